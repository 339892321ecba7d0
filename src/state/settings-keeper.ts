// Settings made at run time on their way to the disk: at once, and where the disk refuses them again and again until it takes
// them. They are in force meanwhile; only a restart before that would bring back the ones before.

import type { AuditSettings } from '../control/audit-control.ts'
import type { Clock, Timer } from '../core/clock.ts'
import { writeSettings } from './settings-file.ts'

const AGAIN_MS = 5000

export interface SettingsKeeperOptions {
  readonly file: string
  readonly clock: Clock
  /** The disk refused them: the reason. Told at every try. */
  readonly onFault: (reason: string) => void
}

export class SettingsKeeper {
  readonly #to: SettingsKeeperOptions
  /** Those that the disk does not have. */
  #left: AuditSettings | undefined
  #timer: Timer | undefined

  constructor(options: SettingsKeeperOptions) {
    this.#to = options
  }

  /** Whether a restart would bring back other settings than those in force. */
  get isFailing(): boolean {
    return this.#left !== undefined
  }

  save(settings: AuditSettings): void {
    this.#left = settings
    this.#write()
  }

  /** The last try. */
  stop(): void {
    this.#timer?.cancel()
    if (this.#left !== undefined) this.#write()
    this.#timer?.cancel()
  }

  #write(): void {
    this.#timer?.cancel()
    if (this.#left === undefined) return
    try {
      writeSettings(this.#to.file, this.#left)
      this.#left = undefined
    } catch (error) {
      this.#to.onFault(error instanceof Error ? error.message : String(error))
      this.#timer = this.#to.clock.after(AGAIN_MS, () => this.#write())
    }
  }
}
