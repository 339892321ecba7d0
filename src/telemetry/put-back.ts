// Counts and logs files of the daemon that another process removed and that the daemon made again. The first removal of each kind of file is
// logged at once. Later removals are logged once a minute, with their number since the last line.

import type { Clock, Timer } from '../core/clock.ts'
import type { Log } from './log.ts'

export type OwnFile = 'admin-socket' | 'take-over-socket' | 'settings' | 'resources'

const MINUTE_MS = 60_000
const MESSAGES: Readonly<Record<OwnFile, string>> = {
  'admin-socket': 'the admin socket was removed: made anew',
  'take-over-socket': 'the take-over socket was removed: made anew',
  settings: 'the file of settings is gone: written anew',
  resources: 'a file of resources is gone: written anew',
}

export class PutBack {
  readonly counts: Record<OwnFile, number> = {
    'admin-socket': 0,
    'take-over-socket': 0,
    settings: 0,
    resources: 0,
  }
  readonly #clock: Clock
  readonly #log: Log
  /** Kinds that were logged in the last minute. `timer` ends that minute; `since` counts removals after the log line. */
  readonly #quiet = new Map<OwnFile, { readonly timer: Timer; since: number }>()

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  add(file: OwnFile, path: string): void {
    this.counts[file]++
    const quiet = this.#quiet.get(file)
    if (quiet === undefined) this.#report(file, path, 1)
    else quiet.since++
  }

  /** Ends logging. */
  stop(): void {
    for (const { timer } of this.#quiet.values()) timer.cancel()
  }

  #report(file: OwnFile, path: string, count: number): void {
    this.#log.warn({ path, count }, MESSAGES[file])
    const timer = this.#clock.after(MINUTE_MS, () => {
      const since = this.#quiet.get(file)?.since ?? 0
      this.#quiet.delete(file)
      if (since > 0) this.#report(file, path, since)
    })
    this.#quiet.set(file, { timer, since: 0 })
  }
}
