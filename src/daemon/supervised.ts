// Reports the daemon to systemd (Type=notify): ready when /readyz says so and the daemon's own listeners answer, with a status line
// of faults, and a watchdog that the same self-queries feed. Without a supervisor nothing runs here.

import type { Clock, Timer } from '../core/clock.ts'
import type { Daemon } from './daemon.ts'
import { SelfQuery } from '../proxy/self-check.ts'
import type { Notifier } from '../systemd/notify.ts'
import { Watchdog } from '../systemd/watchdog.ts'

const LOOK_MS = 200
/** While it starts, a minute at a time is asked for, now and then: servers that are silent are no reason to be killed. */
const EXTEND_USEC = 60_000_000
const LOOKS_PER_EXTENSION = 50
/** Files count as read again when nothing has been in transition for so many looks. */
const QUIET_LOOKS = 3

export interface SupervisedOptions {
  readonly daemon: Daemon
  readonly notifier: Notifier
  readonly clock: Clock
}

export class Supervised {
  readonly #to: SupervisedOptions
  readonly #selfQuery: SelfQuery
  #watchdog: Watchdog | undefined
  #timer: Timer | undefined
  /** Whether our own listeners have answered us. */
  #answers = false
  #isReady = false
  #status = ''
  /** Looks until a reload counts as done; 0: none is under way. */
  #reloading = 0
  #looks = 0

  constructor(options: SupervisedOptions) {
    const { daemon } = options
    this.#to = options
    this.#selfQuery = new SelfQuery(daemon.proxy.selfCheck, () => daemon.proxy.listeners.bound)
  }

  start(): void {
    this.#timer = this.#to.clock.every(LOOK_MS, () => this.#look())
  }

  /** Files are read again (SIGHUP). */
  reloading(): void {
    this.#to.notifier.tell({ RELOADING: 1 })
    this.#reloading = QUIET_LOOKS
  }

  /** The end has begun, or another process goes on as the service. */
  stopping(): void {
    this.#to.notifier.tell({ STOPPING: 1, STATUS: 'stopping' })
    this.stop()
  }

  /** Tells nothing more. */
  stop(): void {
    this.#timer?.cancel()
    this.#watchdog?.stop()
    this.#selfQuery.stop()
  }

  #look(): void {
    const { daemon } = this.#to
    const reasons = [...daemon.notReady]
    if (!this.#answers) {
      reasons.push('its own listeners do not answer')
      this.#selfQuery.ask(() => (this.#answers = true))
    }
    if (!this.#isReady && reasons.length === 0) this.#becomeReady()
    this.#tell(reasons)
    if (this.#reloading === 0) return
    this.#reloading = daemon.transition.pending ? QUIET_LOOKS : this.#reloading - 1
    if (this.#reloading === 0) this.#to.notifier.tell({ READY: 1 })
  }

  #becomeReady(): void {
    const { notifier, clock } = this.#to
    const { watchdogMs: intervalMs } = notifier.supervisor
    this.#isReady = true
    notifier.tell({ READY: 1 })
    if (intervalMs === 0) return
    this.#watchdog = new Watchdog({
      clock,
      intervalMs,
      ask: (answered) => this.#selfQuery.ask(answered),
      feed: () => notifier.tell({ WATCHDOG: 1 }),
    })
    this.#watchdog.start()
  }

  #tell(reasons: readonly string[]): void {
    const { daemon, notifier } = this.#to
    const { texts } = daemon.proxy.listeners
    const status = reasons.length === 0 ? `serves ${texts.join(', ')}` : reasons.join('; ')
    const isDue = !this.#isReady && this.#looks++ % LOOKS_PER_EXTENSION === 0
    if (isDue) notifier.tell({ EXTEND_TIMEOUT_USEC: EXTEND_USEC })
    if (status === this.#status) return
    this.#status = status
    notifier.tell({ STATUS: this.#isReady ? status : `starting: ${status}` })
  }
}
