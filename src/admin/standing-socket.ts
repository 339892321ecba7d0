// Keeps a socket file in place while its socket listens: a file that was removed, as by a cleaner of temporary folders, is made
// anew. One stat a second; open connections continue.

import { lstatSync } from 'node:fs'
import type { Clock, Timer } from '../core/clock.ts'
import { messageOf, systemCodeOf } from '../core/errors.ts'

/** Between two looks whether the file is there. */
const LOOK_MS = 1000

/** The file was gone; it is there again, unless there is a reason why not. Told again as long as it is gone. */
export type OnRemoved = (reason: string | undefined) => void

export interface StandingSocketOptions {
  readonly path: string
  readonly clock: Clock
  /** Listens anew at the path; throws, or rejects with, the reason why that can't be. */
  readonly renew: () => Promise<void> | void
  readonly onRemoved?: OnRemoved | undefined
}

export class StandingSocket {
  readonly #to: StandingSocketOptions
  readonly #looks: Timer
  #renewing: Promise<void> | undefined

  /** Looks from now on: the file is there. */
  constructor(options: StandingSocketOptions) {
    this.#to = options
    this.#looks = options.clock.every(LOOK_MS, () => this.#look())
  }

  /** No more looks; resolves when none is under way. */
  async stop(): Promise<void> {
    this.#looks.cancel()
    await this.#renewing
  }

  #look(): void {
    if (this.#renewing !== undefined || !isGone(this.#to.path)) return
    this.#renewing = this.#renew().finally(() => (this.#renewing = undefined))
  }

  async #renew(): Promise<void> {
    const { renew, onRemoved } = this.#to
    try {
      await renew()
      onRemoved?.(undefined)
    } catch (error) {
      onRemoved?.(messageOf(error))
    }
  }
}

/** What cannot be looked at may be there. */
function isGone(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined
  } catch (error) {
    return systemCodeOf(error) === 'ENOTDIR'
  }
}
