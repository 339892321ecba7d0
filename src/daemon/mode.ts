// Keeps the daemon's mode. A bypass that was set by hand (break-glass mode) stays until it is removed by hand. Otherwise audit settings
// and silent sources decide. An audit that was set by hand stays until a change of settings or sources sets the mode again.

import type { Config } from '../config/config.ts'
import type { AuditControl } from '../enforcement/audit-control.ts'
import { reportMode, reportSilence } from './log-reports.ts'
import type { Mode } from '../datapath/entries.ts'
import type { Datapath } from '../datapath/datapath.ts'
import type { SourceKind } from '../sources/source-ages.ts'
import type { Log } from '../telemetry/log.ts'

/** The parts that decide the mode. Some of them are made after DaemonMode. */
export interface ModeParts {
  readonly config: Pick<Config, 'sources'>
  readonly datapath: Datapath
  readonly audit: AuditControl
  readonly sources: { readonly ages: { readonly silent: readonly SourceKind[] } }
}

export class DaemonMode {
  readonly #parts: ModeParts
  readonly #log: Log
  #mode: Mode = 'enforce'

  constructor(parts: ModeParts, log: Log) {
    this.#parts = parts
    this.#log = log
  }

  get now(): Mode {
    return this.#mode
  }

  /** The mode that settings and silent sources ask for. */
  get configured(): 'audit' | 'enforce' {
    return this.#parts.audit.node.on || this.isSilentFor('audit') ? 'audit' : 'enforce'
  }

  /** Sets the mode at the start. A bypass that was set before the start is kept. Any other mode is decided again. */
  start(restored: Mode): void {
    this.set(restored === 'bypass' ? 'bypass' : this.configured)
  }

  /** Sets the mode. `pinned` adopts the mode that the operator has set in the pinned maps. */
  set(mode: Mode | 'pinned'): void {
    const { datapath } = this.#parts
    const before = this.#mode
    if (mode !== 'pinned') datapath.mode.set(mode)
    this.#mode = datapath.mode.read()
    if (this.#mode !== before) reportMode(this.#log, this.#mode)
  }

  /** True while a source is silent and `sources.then` is `what`. */
  isSilentFor(what: Config['sources']['onMaxAge']): boolean {
    const { config, sources } = this.#parts
    return config.sources.onMaxAge === what && sources.ages.silent.length > 0
  }

  /** Receives the silent sources when the first source becomes silent, and an empty list when all are reachable again. */
  readonly onSilence = (silent: readonly SourceKind[]): void => {
    const { onMaxAge } = this.#parts.config.sources
    reportSilence(this.#log, silent, onMaxAge)
    if (onMaxAge === 'audit' && this.#mode !== 'bypass') this.set(this.configured)
  }
}
