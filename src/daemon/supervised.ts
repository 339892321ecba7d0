// Reports the daemon to systemd (Type=notify). The daemon is ready when /readyz says so and the daemon's own listeners have answered a
// query that the daemon sent. The status line has the faults. The same queries of the daemon to itself feed the watchdog. DaemonProcess
// makes a Supervised only for a process with a supervisor.

import type { Clock, Timer } from '../core/clock.ts'
import type { Daemon } from './daemon.ts'
import { SelfQuery } from '../proxy/self-check.ts'
import type { Notifier } from '../systemd/notify.ts'
import { Watchdog } from '../systemd/watchdog.ts'

const LOOK_MS = 200
/** During the start, systemd is asked every ten seconds for another minute, so that it does not kill the daemon while no server answers. */
const EXTEND_USEC = 60_000_000
const LOOKS_PER_EXTENSION = 50
/** A reload is complete after this many looks in a row without a transition. */
const QUIET_LOOKS = 3
/** The longest take-over for which the watchdog is fed without a query to the daemon itself. A take-over that fails is much shorter. */
const HANDOVER_MAX_MS = 60_000

export class Supervised {
  readonly #daemon: Daemon
  readonly #notifier: Notifier
  readonly #clock: Clock
  readonly #selfQuery: SelfQuery
  #watchdog: Watchdog | undefined
  #timer: Timer | undefined
  /** True after the daemon's own listeners have answered once. */
  #answers = false
  #isReady = false
  #status = ''
  /** How many looks are left until a reload is complete; 0 when no reload is under way. */
  #reloading = 0
  #looks = 0
  /** Until when the watchdog is fed without queries, because this daemon hands over and reads none. */
  #handsOverUntil = 0

  constructor(daemon: Daemon, notifier: Notifier, clock: Clock) {
    this.#daemon = daemon
    this.#notifier = notifier
    this.#clock = clock
    const { selfCheck, datagrams, listeners } = daemon.proxy
    this.#selfQuery = new SelfQuery(selfCheck, datagrams, () => listeners.bound)
  }

  start(): void {
    this.#timer = this.#clock.every(LOOK_MS, () => this.#look())
  }

  /** Tells systemd that a reload began (SIGHUP). */
  reloading(): void {
    this.#notifier.tell({ RELOADING: 1 })
    this.#reloading = QUIET_LOOKS
  }

  /** Feeds the watchdog while the daemon hands over, because it reads no query then. */
  handingOver(): void {
    this.#handsOverUntil = this.#clock.now() + HANDOVER_MAX_MS
    this.#status = 'hands over to another process'
    this.#notifier.tell({ STATUS: this.#status })
  }

  /** Continues as before `handingOver`. */
  handedNothing(): void {
    this.#handsOverUntil = 0
  }

  /** Tells systemd that the daemon ends, and stops. */
  stopping(): void {
    this.#notifier.tell({ STOPPING: 1, STATUS: 'stopping' })
    this.stop()
  }

  /** Stops reporting. */
  stop(): void {
    this.#timer?.cancel()
    this.#watchdog?.stop()
    this.#selfQuery.stop()
  }

  #look(): void {
    if (this.#handsOverUntil > 0) {
      if (this.#clock.now() < this.#handsOverUntil) this.#notifier.tell({ WATCHDOG: 1 })
      return
    }
    const daemon = this.#daemon
    const reasons = [...daemon.notReady]
    if (!this.#answers) {
      reasons.push('its own listeners do not answer')
      this.#selfQuery.ask(() => (this.#answers = true))
    }
    if (!this.#isReady && reasons.length === 0) this.#becomeReady()
    this.#tell(reasons)
    if (this.#reloading === 0) return
    this.#reloading = daemon.transition.pending ? QUIET_LOOKS : this.#reloading - 1
    if (this.#reloading === 0) this.#notifier.tell({ READY: 1 })
  }

  #becomeReady(): void {
    const notifier = this.#notifier
    const { watchdogMs: intervalMs } = notifier.supervisor
    this.#isReady = true
    notifier.tell({ READY: 1 })
    if (intervalMs === 0) return
    this.#watchdog = new Watchdog({
      clock: this.#clock,
      intervalMs,
      ask: (answered) => this.#selfQuery.ask(answered),
      feed: () => notifier.tell({ WATCHDOG: 1 }),
    })
    this.#watchdog.start()
  }

  #tell(reasons: readonly string[]): void {
    const notifier = this.#notifier
    const { texts } = this.#daemon.proxy.listeners
    const status = reasons.length === 0 ? `serves ${texts.join(', ')}` : reasons.join('; ')
    const isDue = !this.#isReady && this.#looks++ % LOOKS_PER_EXTENSION === 0
    if (isDue) notifier.tell({ EXTEND_TIMEOUT_USEC: EXTEND_USEC })
    if (status === this.#status) return
    this.#status = status
    notifier.tell({ STATUS: this.#isReady ? status : `starting: ${status}` })
  }
}
