// The daemon's mode. A mode that was set by hand (break-glass mode) comes first, then settings and silent sources.

import type { Config } from '../config/config.ts'
import type { AuditControl } from '../enforcement/audit-control.ts'
import { reportMode, reportSilence } from './log-reports.ts'
import type { Mode } from '../datapath/entries.ts'
import type { Datapath } from '../datapath/datapath.ts'
import type { SourceKind } from '../sources/source-ages.ts'
import type { Log } from '../telemetry/log.ts'

/** What it looks at; a part that is made later is read when it is there. */
export interface ModeSources {
  readonly config: Pick<Config, 'sources'>
  readonly datapath: Datapath
  readonly audit: AuditControl
  readonly sources: { readonly ages: { readonly silent: readonly SourceKind[] } }
}

export class DaemonMode {
  readonly #of: ModeSources
  readonly #log: Log
  #mode: Mode = 'enforce'

  constructor(sources: ModeSources, log: Log) {
    this.#of = sources
    this.#log = log
  }

  get now(): Mode {
    return this.#mode
  }

  /** What settings and silent sources ask for. */
  get configured(): 'audit' | 'enforce' {
    return this.#of.audit.node.on || this.isSilentFor('audit') ? 'audit' : 'enforce'
  }

  /** A bypass that was set by hand stays until it is taken back by hand. */
  start(restored: Mode): void {
    this.set(restored === 'bypass' ? 'bypass' : this.configured)
  }

  /** `pinned`: whatever the datapath has by now is what the operator wants. */
  set(mode: Mode | 'pinned'): void {
    const { datapath } = this.#of
    const before = this.#mode
    if (mode !== 'pinned') datapath.mode.set(mode)
    this.#mode = datapath.mode.read()
    if (this.#mode !== before) reportMode(this.#log, this.#mode)
  }

  /** Whether sources are silent for so long that this is to happen. */
  isSilentFor(what: Config['sources']['onMaxAge']): boolean {
    const { config, sources } = this.#of
    return config.sources.onMaxAge === what && sources.ages.silent.length > 0
  }

  /** Sources fell silent, or were heard again. */
  readonly onSilence = (silent: readonly SourceKind[]): void => {
    const { onMaxAge } = this.#of.config.sources
    reportSilence(this.#log, silent, onMaxAge)
    if (onMaxAge === 'audit' && this.#mode !== 'bypass') this.set(this.configured)
  }
}
