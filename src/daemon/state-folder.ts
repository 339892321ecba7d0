// The state folder of a config: read at the start, written from then on. Provides the daemon's saved state, the figures of `status`
// and metrics, and the end. Every two seconds it checks that the folder and the latest files are still there. Missing files are
// written anew, but never in a folder whose lock another daemon holds.

import { join } from 'node:path'
import type { AdminState } from '../admin/state.ts'
import type { Config } from '../config/config.ts'
import type { StateFolder } from '../restore/state-port.ts'
import { systemBootClock, systemClock, type Timer } from '../core/clock.ts'
import { messageOf, systemCodeOf } from '../core/errors.ts'
import type { DaemonOptions } from './parts.ts'
import type { FolderLock, Locks } from './locks.ts'
import type { StateFault } from '../state/faults.ts'
import { openState, readBootId, type OpenedState } from '../state/open-state.ts'
import { ResourceShards } from '../state/resource-shards.ts'
import { SettingsKeeper } from '../state/settings.ts'
import type { Log } from '../telemetry/log.ts'
import type { PutBack } from '../telemetry/put-back.ts'

const SECOND_MS = 1000
const LOOK_MS = 2 * SECOND_MS
const NOT_WRITTEN = 'in force until a restart: not written yet'

export interface StateFolderOptions {
  readonly config: Config
  readonly log: Log
  readonly locks: Locks
  readonly putBack: PutBack
}

export class DaemonStateFolder {
  readonly #opened: OpenedState
  readonly #settings: SettingsKeeper
  readonly #resources: ResourceShards
  /** Undefined: there is none to have. */
  readonly #lock: FolderLock | undefined
  readonly #log: Log
  readonly #putBack: PutBack
  #looks: Timer | undefined
  /** Why the folder is another daemon's. */
  #taken: string | undefined
  /** Whether the lock went, and nothing has been written since. */
  #isLost = false

  /** Throws nothing: a folder that cannot be read or written is told, and the daemon goes on with what the kernel has. */
  constructor({ config: { state, limits }, log, locks, putBack }: StateFolderOptions) {
    const shared = { clock: systemClock, mayWrite: () => locks.folder?.need() }
    this.#lock = locks.folder
    this.#log = log
    this.#putBack = putBack
    this.#opened = openState({
      ...shared,
      folder: state.directory,
      boot: systemBootClock,
      pairsMax: limits.pairs,
      onFault: (fault) => tellFault(log, fault),
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

  /** Looks after the folder until `close`. */
  start(): void {
    this.#looks = systemClock.every(LOOK_MS, () => this.#look())
  }

  /** What the daemon begins with, and where it keeps what changes. */
  get forDaemon(): Pick<DaemonOptions, 'kept' | 'auditSettings' | 'saveAudit' | 'resourceKeeper'> {
    return {
      kept: this.#kept,
      auditSettings: this.#settings.saved,
      saveAudit: (audit) => this.#settings.save(audit),
      resourceKeeper: {
        boot: { ...systemBootClock, id: Buffer.from(readBootId()).toString('hex') },
        read: () => this.#resources.read(),
        keep: async (name, line) => await this.#resources.keep(name, line),
      },
    }
  }

  /** For `status` and metrics. */
  get use(): NonNullable<AdminState['kept']>['use'] {
    const { use } = this.#opened.store
    const [settings, resources] = [this.#settings, this.#resources]
    const isBehind = settings.isFailing || resources.isFailing || this.#lacksLock
    return {
      ...use,
      isFailing: use.isFailing || isBehind,
      taken: this.#taken,
      settingsFault: settings.fault,
      damage: [...settings.damage, ...resources.damage],
    }
  }

  /** The last tries; when everything that was given is on the disk, or the disk has refused it. */
  async close(): Promise<void> {
    this.#looks?.cancel()
    this.#settings.stop()
    await this.#resources.close()
    await this.#opened.store.close()
  }

  /** Whether nobody, neither we nor another daemon, can be known to have the folder alone. */
  get #lacksLock(): boolean {
    return this.#lock !== undefined && this.#lock.held === undefined
  }

  #look(): void {
    const { store } = this.#opened
    if (this.#lock?.hasStrayed() === true) {
      this.#isLost = true
      store.lose('the lock of the folder is not the one that was taken')
    }
    if (this.#lacksLock) this.#takeLock()
    if (this.#lacksLock) return
    this.#taken = undefined
    if (!this.#isLost) {
      store.look()
      for (const file of this.#settings.look()) this.#missed('settings', file)
      for (const file of this.#resources.look()) this.#missed('resources', file)
      return
    }
    this.#isLost = false
    this.#settings.saveAgain()
    this.#resources.keepAgain()
    store.hurry()
  }

  /** A file is gone; it is written anew. */
  #missed(which: 'settings' | 'resources', file: string): void {
    this.#opened.store.missed()
    this.#putBack.add(which, file)
  }

  #takeLock(): void {
    try {
      this.#lock?.need()
    } catch (error) {
      const before = this.#taken
      // Where it is the disk that says no, its faults are told where they are met.
      this.#taken = systemCodeOf(error) === undefined ? messageOf(error) : undefined
      if (before !== undefined || this.#taken === undefined) return
      this.#log.warn(
        { reason: this.#taken },
        'another daemon has the state folder: nothing is kept',
      )
    }
  }

  get #kept(): StateFolder {
    const { read, store } = this.#opened
    const bootAtZero = systemBootClock.seconds() - systemClock.now() / SECOND_MS
    return { saved: read.state, sink: store, bootAtZero }
  }
}

function tellFault(log: Log, { cause, message }: StateFault): void {
  const isLost = cause === 'lost'
  const what = isLost
    ? 'has lost what was written: all is written anew'
    : 'refuses what it is given'
  log.warn({ cause, fault: message }, `the state folder ${what}`)
}
