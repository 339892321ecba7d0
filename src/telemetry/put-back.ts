// Files of the daemon that were removed while it runs, and that it made anew. Each is counted by its kind and logged at once, then
// once a minute at most, with the number since the last line.

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
  /** Told in the last minute: the end of that minute, and how many came since. */
  readonly #quiet = new Map<OwnFile, { readonly timer: Timer; since: number }>()

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  add(file: OwnFile, path: string): void {
    this.counts[file]++
    const quiet = this.#quiet.get(file)
    if (quiet === undefined) this.#tell(file, path, 1)
    else quiet.since++
  }

  /** Nothing is told any more. */
  stop(): void {
    for (const { timer } of this.#quiet.values()) timer.cancel()
  }

  #tell(file: OwnFile, path: string, count: number): void {
    this.#log.warn({ path, count }, MESSAGES[file])
    const timer = this.#clock.after(MINUTE_MS, () => {
      const since = this.#quiet.get(file)?.since ?? 0
      this.#quiet.delete(file)
      if (since > 0) this.#tell(file, path, since)
    })
    this.#quiet.set(file, { timer, since: 0 })
  }
}
