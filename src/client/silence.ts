// A SilenceWatch finds out whether a silent daemon still works. A daemon sends nothing for a long time when it makes a long list, waits, or
// has no new flow, but also when it hangs. After half of the time limit, the SilenceWatch sends a small request to the daemon on a
// connection of its own. The command continues to wait as long as the daemon answers these requests.

import { request } from 'node:http'
import { systemClock, type Timer } from '../core/clock.ts'
import { isBuilt, loadPosix } from '../native/native.ts'
import { ConnectionError } from './connection-error.ts'

/** If a daemon sends no octet for this time (in milliseconds), the command reports that it does not answer. */
export const SILENT_MS = 5000

/** The error that a daemon runs but does not answer. */
export class SilentDaemonError extends ConnectionError {
  /** A text such as `daemon (pid 12)`. */
  readonly who: string

  constructor(socket: string, ms: number) {
    const pid = pidOf(socket)
    const who = pid === undefined ? 'daemon' : `daemon (pid ${pid})`
    const end = pid === undefined ? 'kill it with SIGKILL' : `kill -KILL ${pid}`
    super(
      'silent',
      `The ${who} at ${socket} does not answer: nothing came for ${ms} ms, so the daemon hangs, is stopped or is very busy: ${end} and start it again. The kernel continues to enforce, and 'namegate datapath mode' changes it without a daemon`,
    )
    this.who = who
  }
}

/** Watches one request until `stop`. Calls `onSilent` once if the daemon does not answer. */
export class SilenceWatch {
  readonly #socket: string
  readonly #onSilent: (error: SilentDaemonError) => void
  #timer: Timer | undefined
  #isOver = false

  constructor(socket: string, onSilent: (error: SilentDaemonError) => void) {
    this.#socket = socket
    this.#onSilent = onSilent
    this.heard()
  }

  /** Restarts the time limit. Call this when the daemon has sent something. */
  heard(): void {
    this.#timer?.cancel()
    if (this.#isOver) return
    this.#timer = systemClock.after(SILENT_MS / 2, () => this.#knock())
  }

  stop(): void {
    this.#isOver = true
    this.#timer?.cancel()
  }

  #knock(): void {
    const asked = request({ socketPath: this.#socket, method: 'HEAD', path: '/', agent: false })
    this.#timer = systemClock.after(SILENT_MS / 2, () => {
      asked.destroy()
      if (this.#isOver) return
      this.stop()
      this.#onSilent(new SilentDaemonError(this.#socket, SILENT_MS))
    })
    // An error shows that the daemon does not hang. If the daemon has ended, the watched request fails by itself.
    asked.once('response', (response) => {
      response.resume()
      this.heard()
    })
    asked.once('error', () => this.heard())
    asked.end()
  }
}

/** Returns the id of the process that listens on the socket. Undefined if it cannot be found. */
function pidOf(socket: string): number | undefined {
  const found = isBuilt('posix') ? loadPosix().localOwner(socket) : 0
  return found > 0 ? found : undefined
}
