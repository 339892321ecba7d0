// Keeps a socket file in place while its socket listens. If the file was removed, for example by a cleaner of temporary folders,
// StandingSocket makes the file again. The check costs one stat a second. Open connections continue.

import { lstatSync } from 'node:fs'
import type { Clock, Timer } from '../core/clock.ts'
import { messageOf, systemCodeOf } from '../core/errors.ts'

/** The time between two looks at the file. */
const LOOK_MS = 1000

/**
 * Called when the file was removed: with undefined after the file was made again, else with the reason, at each look until the file exists.
 */
export type OnRemoved = (reason: string | undefined) => void

export interface StandingSocketOptions {
  readonly path: string
  readonly clock: Clock
  /** Listens again at the path. Throws or rejects with the reason of a failure. */
  readonly renew: () => Promise<void> | void
  readonly onRemoved?: OnRemoved | undefined
}

export class StandingSocket {
  readonly #options: StandingSocketOptions
  readonly #looks: Timer
  #renewing: Promise<void> | undefined

  /** Begins to look at the file. The file must exist. */
  constructor(options: StandingSocketOptions) {
    this.#options = options
    this.#looks = options.clock.every(LOOK_MS, () => this.#look())
  }

  /** Ends the looks. Resolves when no renewal is under way. */
  async stop(): Promise<void> {
    this.#looks.cancel()
    await this.#renewing
  }

  #look(): void {
    if (this.#renewing !== undefined || !isGone(this.#options.path)) return
    this.#renewing = this.#renew().finally(() => (this.#renewing = undefined))
  }

  async #renew(): Promise<void> {
    const { renew, onRemoved } = this.#options
    try {
      await renew()
      onRemoved?.(undefined)
    } catch (error) {
      onRemoved?.(messageOf(error))
    }
  }
}

/** Returns true when the file is gone. A path that cannot be looked at is taken as present. */
function isGone(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined
  } catch (error) {
    return systemCodeOf(error) === 'ENOTDIR'
  }
}
