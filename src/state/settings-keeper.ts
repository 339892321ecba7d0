// Settings made at run time on their way to the disk: at once, and where the disk refuses them again and again until it takes
// them. They are in force meanwhile; only a restart before that would bring back the ones before.

import { NO_AUDIT_SETTINGS, type AuditSettings } from '../enforcement/audit-control.ts'
import type { Clock } from '../core/clock.ts'
import { messageOf } from '../core/errors.ts'
import { isSettingsFile, readSettings, writeSettings } from './settings-file.ts'
import { WriteAgain } from './write-again.ts'

export interface SettingsKeeperOptions {
  readonly file: string
  readonly clock: Clock
  /** Throws as long as the folder is not ours to write. */
  readonly mayWrite?: () => void
  /** The disk refused them: the reason. Told at every try. */
  readonly onFault: (reason: string) => void
}

export class SettingsKeeper {
  /** As the file had them at the start. */
  readonly saved: AuditSettings
  readonly #to: SettingsKeeperOptions
  readonly #again: WriteAgain
  /** Those that the disk does not have. */
  #left: AuditSettings | undefined
  #damage: string | undefined
  #fault: string | undefined
  #last: AuditSettings

  constructor(options: SettingsKeeperOptions) {
    this.#to = options
    this.#again = new WriteAgain(options.clock, () => this.#write())
    const { audit, fault } = readSettings(options.file)
    this.saved = audit
    this.#last = audit
    this.#damage = fault
  }

  /** Whether a restart would bring back other settings than those in force. */
  get isFailing(): boolean {
    return this.#left !== undefined
  }

  /** Why they are not on the disk; undefined: they are. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** Why the file was passed over, until it is written again. */
  get damage(): readonly string[] {
    return this.#damage === undefined ? [] : [this.#damage]
  }

  save(settings: AuditSettings): void {
    this.#last = settings
    this.#left = settings
    this.#write()
  }

  /** Writes them anew: the file is gone. Where none was needed, none is. */
  saveAgain(): void {
    if (this.#last !== NO_AUDIT_SETTINGS) this.save(this.#last)
  }

  /** Writes them anew when the file is gone, or something else is in its place; the file then. */
  look(): readonly string[] {
    const { file } = this.#to
    if (this.#left !== undefined || this.#last === NO_AUDIT_SETTINGS) return []
    if (isSettingsFile(file)) return []
    this.save(this.#last)
    return [file]
  }

  /** The last try. */
  stop(): void {
    if (this.#left !== undefined) this.#write()
    this.#again.cancel()
  }

  #write(): void {
    this.#again.cancel()
    if (this.#left === undefined) return
    try {
      this.#to.mayWrite?.()
      writeSettings(this.#to.file, this.#left)
      this.#left = undefined
      this.#damage = undefined
      this.#fault = undefined
    } catch (error) {
      this.#fault = messageOf(error)
      this.#to.onFault(this.#fault)
      this.#again.later()
    }
  }
}
