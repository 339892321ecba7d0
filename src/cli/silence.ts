// Finds out whether a silent daemon still works. Long lists, waits and followed flows are silent for long, and so is a daemon that
// hangs. After half of the time a small request goes to the daemon on its own connection. While the daemon answers those, the
// command waits.

import { request } from 'node:http'
import { systemClock, type Timer } from '../core/clock.ts'
import { UnavailableError } from '../core/errors.ts'
import { isBuilt, loadPosix } from '../native/native.ts'

/** Without an octet, until a daemon counts as one that does not answer. */
export const SILENT_MS = 5000

/** There is a daemon, and it does not answer. */
export class SilentDaemonError extends UnavailableError {
  /** `daemon (pid 12)` */
  readonly who: string

  constructor(socket: string, ms: number) {
    const pid = pidOf(socket)
    const who = pid === undefined ? 'daemon' : `daemon (pid ${pid})`
    const end = pid === undefined ? 'kill it with SIGKILL' : `kill -KILL ${pid}`
    super(
      `The ${who} at ${socket} does not answer: nothing came in ${ms} ms, so it hangs, is stopped or very busy: ${end} and start it again; what the kernel enforces stays in force, and 'namegate datapath mode' changes it without a daemon`,
    )
    this.who = who
  }
}

/** Looks after one request until `stop`. */
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

  /** The daemon said something. */
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
    // A refusal is an answer, too: one that ended is seen by the request itself.
    asked.once('response', (response) => {
      response.resume()
      this.heard()
    })
    asked.once('error', () => this.heard())
    asked.end()
  }
}

/** Of whoever listens there; undefined: not to be found out. */
function pidOf(socket: string): number | undefined {
  const found = isBuilt('posix') ? loadPosix().localOwner(socket) : 0
  return found > 0 ? found : undefined
}
