// Sends notices to systemd, as datagrams to its socket (sd_notify(3)). A notice that systemd does not take is lost, because the daemon must
// not depend on its supervisor. The socket and the watchdog's interval are removed from the environment, so that no child process can
// send notices in the daemon's name.

import { loadPosix, errnoName, type Posix } from '../native/native.ts'

/** Names and values as in sd_notify(3). */
export interface Notice {
  readonly READY?: 1
  readonly STOPPING?: 1
  readonly RELOADING?: 1
  readonly MAINPID?: number
  readonly WATCHDOG?: 1
  readonly EXTEND_TIMEOUT_USEC?: number
  /** One line for people. */
  readonly STATUS?: string
}

/** The receiver of notices, from the environment or from a predecessor. */
export interface Supervisor {
  /** A path, or `@` followed by an abstract name. */
  readonly socket: string
  /** The watchdog's interval in milliseconds. 0: no watchdog. */
  readonly watchdogMs: number
}

type Environment = Record<string, string | undefined>

/** Reads and removes the variables of systemd. Undefined without a receiver of notices. */
export function takeSupervisor(environment: Environment, pid: number): Supervisor | undefined {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: interval, WATCHDOG_PID: watched } = environment
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete environment[name]
  if (socket === undefined || !/^[/@]./.test(socket)) return undefined
  const isMeant = watched === undefined || watched === String(pid)
  const usec = isMeant && interval !== undefined && /^\d{1,15}$/.test(interval) ? interval : 0
  return { socket, watchdogMs: Math.floor(Number(usec) / 1000) }
}

export class Notifier {
  readonly supervisor: Supervisor
  readonly #posix: Posix
  readonly #encoder = new TextEncoder()
  #lastFault = ''

  constructor(posix: Posix, supervisor: Supervisor) {
    this.#posix = posix
    this.supervisor = supervisor
  }

  /** Why the last notice did not arrive. Empty when it arrived. */
  get fault(): string {
    return this.#lastFault
  }

  tell(notice: Notice): void {
    const lines = Object.entries(notice).map(([name, value]) => {
      return `${name}=${String(value).replaceAll('\n', ' ')}`
    })
    const octets = this.#encoder.encode(lines.join('\n'))
    const result = this.#posix.localSend(this.supervisor.socket, octets)
    this.#lastFault = result < 0 ? errnoName(result) : ''
  }
}

/** Makes the sender of notices. Undefined without a receiver of notices. */
export function openNotifier(supervisor: Supervisor | undefined): Notifier | undefined {
  if (supervisor === undefined) return undefined
  return new Notifier(loadPosix(), supervisor)
}
