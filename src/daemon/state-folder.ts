// Opens the state folder of a config. The folder is read at the start and written later. DaemonStateFolder has the daemon's saved state,
// and the figures for `status` and metrics. Every two seconds it checks that the folder and the latest files still exist. It writes
// missing files again, but never in a folder whose lock another daemon holds.

import { join } from 'node:path'
import type { AdminState } from '../admin/state.ts'
import type { Config } from '../config/config.ts'
import type { StateFolder } from '../restore/state-port.ts'
import { systemBootClock, systemClock, type Timer } from '../core/clock.ts'
import { messageOf, systemCodeOf } from '../core/errors.ts'
import { invariant } from '../core/invariant.ts'
import type { DaemonOptions } from './parts.ts'
import type { FolderLock, Locks } from './locks.ts'
import type { StateFault } from '../state/faults.ts'
import { openState, type OpenedState } from '../state/state-store.ts'
import { readBootId } from '../state/stamp.ts'
import { ResourceShards } from '../state/resource-shards.ts'
import { SettingsKeeper } from '../state/settings.ts'
import type { Log } from '../telemetry/log.ts'
import type { PutBack } from '../telemetry/put-back.ts'

const SECOND_MS = 1000
const LOOK_MS = 2 * SECOND_MS
const NOT_WRITTEN = 'in force until a restart: not written yet'

export class DaemonStateFolder {
  readonly #opened: OpenedState
  readonly #settings: SettingsKeeper
  readonly #resources: ResourceShards
  readonly #lock: FolderLock
  readonly #log: Log
  readonly #putBack: PutBack
  #looks: Timer | undefined
  /** Text that names the other daemon which has the folder. Undefined when no other daemon has it. */
  #taken: string | undefined
  /** True after the lock was lost, until everything is written again. */
  #isLost = false

  /** Never throws. A folder that cannot be read or written is logged, and the daemon continues with the kernel's entries. */
  constructor({ state, limits }: Config, log: Log, locks: Locks, putBack: PutBack) {
    const lock = locks.folder
    invariant(lock !== undefined, 'a state folder that is kept has a lock')
    const shared = { clock: systemClock, mayWrite: () => lock.need() }
    this.#lock = lock
    this.#log = log
    this.#putBack = putBack
    this.#opened = openState({
      ...shared,
      folder: state.directory,
      boot: systemBootClock,
      pairsMax: limits.pairs,
      onFault: (fault) => logFault(log, fault),
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

  /** Checks the folder every two seconds until `close`. */
  start(): void {
    this.#looks = systemClock.every(LOOK_MS, () => this.#look())
  }

  /** The saved state for the daemon, and the functions that keep changes. */
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

  /** The figures for `status` and metrics. */
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

  /** Resolves when everything is on disk, or when the disk has refused it. */
  async close(): Promise<void> {
    this.#looks?.cancel()
    this.#settings.stop()
    await this.#resources.close()
    await this.#opened.store.close()
  }

  /** True while this daemon should have the lock of the folder but does not. */
  get #lacksLock(): boolean {
    return this.#lock.held === undefined
  }

  #look(): void {
    const { store } = this.#opened
    if (this.#lock.hasStrayed()) {
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

  /** Counts a file that another process removed and that the daemon writes again. */
  #missed(which: 'settings' | 'resources', file: string): void {
    this.#opened.store.missed()
    this.#putBack.add(which, file)
  }

  #takeLock(): void {
    try {
      this.#lock.need()
    } catch (error) {
      const before = this.#taken
      // If the disk refuses the lock file, the writer that meets the refusal logs it.
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

function logFault(log: Log, { cause, message }: StateFault): void {
  const isLost = cause === 'lost'
  const what = isLost ? 'has lost what was written: all is written anew' : 'cannot be written'
  log.warn({ cause, fault: message }, `the state folder ${what}`)
}
