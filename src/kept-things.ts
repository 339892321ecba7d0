// The state folder of a config, all that is in it: read at the start, and written from then on. What the daemon is given of
// it, what `status` and metrics say of it, and its end.

import { join } from 'node:path'
import type { AdminState } from './admin/state.ts'
import type { Config } from './config/config.ts'
import type { KeptState } from './control/keeping.ts'
import { systemBootClock, systemClock } from './core/clock.ts'
import type { DaemonOptions } from './daemon.ts'
import type { Locks } from './locks.ts'
import { openState, type OpenedState } from './state/open-state.ts'
import { ResourceShards } from './state/resource-shards.ts'
import { SettingsKeeper } from './state/settings-keeper.ts'
import type { Log } from './telemetry/log.ts'

const SECOND_MS = 1000
const NOT_WRITTEN = 'in force until a restart: not written yet'

export class KeptThings {
  readonly #opened: OpenedState
  readonly #settings: SettingsKeeper
  readonly #resources: ResourceShards
  readonly #locks: Locks

  /** Throws nothing: a folder that cannot be read or written is told, and the daemon goes on with what the kernel has. */
  constructor({ state, limits }: Config, log: Log, locks: Locks) {
    const shared = { clock: systemClock, mayWrite: () => locks.needFolder() }
    this.#locks = locks
    this.#opened = openState({
      ...shared,
      folder: state.directory,
      boot: systemBootClock,
      pairsMax: limits.pairs,
      onFault: ({ cause, message }) => {
        log.warn({ cause, fault: message }, 'the state folder refuses what it is given')
      },
    })
    for (const { file, offset, reason, isNormal } of this.#opened.read.passedOver) {
      const fields = { file, offset, reason }
      if (isNormal) log.debug(fields, 'the end of a journal is incomplete, as after a kill')
      else log.warn(fields, 'state passed over')
    }
    this.#settings = new SettingsKeeper({
      ...shared,
      file: join(state.directory, 'settings.json'),
      onFault: (reason) => log.limited('settings', { reason }, `settings are ${NOT_WRITTEN}`),
    })
    for (const fault of this.#settings.damage) log.warn({ fault }, 'settings passed over')
    this.#resources = new ResourceShards({
      ...shared,
      folder: join(state.directory, 'resources'),
      onDamage: (fault) => log.warn({ fault }, 'kept resources passed over'),
      onFault: (reason) => log.limited('resources', { reason }, `resources are ${NOT_WRITTEN}`),
    })
  }

  /** What the daemon begins with, and where it keeps what changes. */
  get forDaemon(): Pick<DaemonOptions, 'kept' | 'auditSettings' | 'saveAudit' | 'resourceKeeper'> {
    return {
      kept: this.#kept,
      auditSettings: this.#settings.saved,
      saveAudit: (audit) => this.#settings.save(audit),
      resourceKeeper: this.#resources,
    }
  }

  /** For `status` and metrics. */
  get use(): NonNullable<AdminState['kept']>['use'] {
    const { use } = this.#opened.store
    const [settings, resources] = [this.#settings, this.#resources]
    const isBehind = settings.isFailing || resources.isFailing || this.#locks.lacksFolder
    return {
      ...use,
      isFailing: use.isFailing || isBehind,
      damage: [...settings.damage, ...resources.damage],
    }
  }

  /** The last tries; when everything that was given is on the disk, or the disk has refused it. */
  async close(): Promise<void> {
    this.#settings.stop()
    await this.#resources.close()
    await this.#opened.store.close()
  }

  get #kept(): KeptState {
    const { read, store } = this.#opened
    const bootAtZero = systemBootClock.seconds() - systemClock.now() / SECOND_MS
    return { saved: read.state, sink: store, bootAtZero }
  }
}
