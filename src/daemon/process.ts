// Runs the daemon as one process from its start to its end. The process starts alone or takes over from another process. The process can
// hand everything to a successor, and serves again when the successor fails. At any time one `DaemonServices` serves.

import type { Config } from '../config/config.ts'
import { systemClock } from '../core/clock.ts'
import { Daemon } from './daemon.ts'
import type { Detach } from '../admin/state.ts'
import { DaemonServices, type ServicesOptions } from './services.ts'
import { Supervised } from './supervised.ts'
import { HandoverSource } from '../handover/source.ts'
import { ConnectSocket, connectPathOf } from '../handover/connect.ts'
import type { HandedOver } from '../handover/handing-over.ts'
import { loadCluster } from './open-cluster.ts'
import { openDatapath } from './open-datapath.ts'
import type { HandedQuery } from '../proxy/handed.ts'
import { reportRemovedSocket } from './log-reports.ts'
import { Successor } from '../handover/successor.ts'
import { openNotifier, type Notifier, type Supervisor } from '../systemd/notify.ts'
import type { Log } from '../telemetry/log.ts'
import { SILENT } from '../telemetry/silent.ts'

export interface DaemonProcessOptions {
  readonly config: Config
  readonly log: Log
  readonly passed: ServicesOptions['passed']
  readonly supervisor: Supervisor | undefined
  readonly makeDetach: (daemon: Daemon) => Detach | undefined
}

/** The longest wait for queries in flight when a successor takes over. */
const IN_FLIGHT_MAX_MS = 5000

/** Calls `onQuery` for each query that another daemon hands over. */
type QuerySource = (onQuery: (handed: HandedQuery) => void) => void

export class DaemonProcess {
  readonly ending = new Ending()
  readonly #options: DaemonProcessOptions
  #notifier: Notifier | undefined
  #services: DaemonServices | undefined
  #supervised: Supervised | undefined
  #connectSocket: ConnectSocket | undefined
  #isHandingOver = false

  constructor(options: DaemonProcessOptions) {
    this.#options = options
    this.#notifier = openNotifier(options.supervisor)
  }

  /** The daemon that serves now. Undefined before the start, after the end, and after a successor took over. */
  get daemon(): Daemon | undefined {
    return this.#services?.daemon
  }

  /** Starts without a predecessor. The caller must call `stop`, also when `start` rejects. */
  async start(): Promise<void> {
    const { passed } = this.#options
    await this.#serve({ passed, outlives: passed !== undefined })
    this.#openConnectSocket()
  }

  /**
   * Takes over from the running daemon. Rejects with InvalidInputError when the present files allow no daemon to start, and with
   * UnavailableError when the running daemon continues, for example after a signal.
   */
  async takeOver(): Promise<void> {
    const { config } = this.#options
    checkSources(config)
    const successor = new Successor(config, systemClock)
    void this.ending.asked.then((end) => {
      if (end === 'stop') successor.giveUp('a signal ended the attempt')
    })
    const given = await successor.given()
    this.#notifier ??= openNotifier(given.supervisor)
    await this.#resume(given, async () => {
      await successor.go()
      return (onQuery) => successor.hear(onQuery)
    })
  }

  reload(): void {
    this.#supervised?.reloading()
    this.daemon?.sources.reload()
  }

  /** Ends everything. With `drains`, the queries in flight are answered first. */
  async stop(drains: boolean): Promise<void> {
    this.#connectSocket?.close()
    if (drains) {
      this.#supervised?.stopping()
      await this.#services?.drain(this.ending.hurried)
    }
    this.#supervised?.stop()
    await this.#services?.stop()
    this.#services = undefined
  }

  async #serve(more: Partial<ServicesOptions>): Promise<DaemonServices> {
    const { config, log, makeDetach } = this.#options
    const outside = { state: true, admin: true, metrics: true }
    const openCluster = await loadCluster(config, log)
    const services = new DaemonServices({ config, log, outside, makeDetach, openCluster, ...more })
    this.#services = services
    await services.start()
    return services
  }

  /** Starts with the sockets and locks of another daemon. Serves that daemon's clients after `go` has resolved. */
  async #resume(handed: HandedOver, go: () => Promise<QuerySource>): Promise<void> {
    const { locks, outlives } = handed
    const passed = handed.listeners
    const services = await this.#serve({ passed, locks, outlives, isQuiet: true })
    const hear = await go()
    const taken = services.takeOn(handed)
    services.read()
    hear((query) => taken.query(query))
    this.#openConnectSocket()
  }

  #openConnectSocket(): void {
    const { log, config } = this.#options
    if (this.#services === undefined) return
    const { daemon, putBack } = this.#services
    if (this.#notifier !== undefined) {
      this.#supervised?.stop()
      this.#supervised = new Supervised(daemon, this.#notifier, systemClock)
      this.#supervised.start()
    }
    try {
      const path = connectPathOf(config.admin.socket)
      this.#connectSocket = new ConnectSocket({
        path,
        clock: systemClock,
        onConnect: (descriptor) => void this.#give(descriptor),
        onRemoved: reportRemovedSocket(log, putBack, 'take-over', path),
      })
    } catch (error) {
      log.warn(
        { reason: String(error) },
        'cannot open the take-over socket: no other daemon can take over from this daemon',
      )
    }
  }

  async #give(descriptor: number): Promise<void> {
    const { log, config } = this.#options
    const services = this.#services
    const source = new HandoverSource({
      clock: systemClock,
      descriptor,
      supervisor: this.#notifier?.supervisor,
      inFlightMs: Math.min(config.upstreams.timeoutMs, IN_FLIGHT_MAX_MS),
      onGone: (pid) => this.#gone(pid),
    })
    if (services === undefined || this.#isHandingOver) return await source.turnAway()
    this.#isHandingOver = true
    this.#supervised?.handingOver()
    try {
      const end = await source.run(services)
      if (end.kind === 'gone') {
        services.finish()
        this.#services = undefined
        this.ending.end('handed-over')
      } else if (end.kind === 'refused') {
        log.warn({ reason: end.reason }, 'a take-over was refused')
        this.#supervised?.handedNothing()
      } else {
        log.error({ reason: end.reason }, 'the successor failed, this daemon goes on')
        await this.#comeBack(services, end.handed, end.hear)
      }
    } catch (error) {
      log.error({ error: String(error) }, 'a take-over failed, this daemon ends')
      this.ending.end('detached')
    } finally {
      this.#isHandingOver = false
    }
  }

  /** Serves again after a successor failed. New services serve; the old services stop when none of their queries is in flight. */
  async #comeBack(before: DaemonServices, handed: HandedOver, hear: QuerySource): Promise<void> {
    this.#connectSocket?.close()
    await this.#resume(handed, async () => await Promise.resolve(hear))
    const { inFlight } = before.daemon.proxy.upstream
    const timer = systemClock.every(100, () => {
      if (inFlight.count > 0) return
      timer.cancel()
      before.finish()
    })
  }

  #gone(pid: number): void {
    this.#options.log.info({ pid }, 'another process goes on as the daemon')
    this.#supervised?.stop()
    this.#connectSocket?.close()
    this.#notifier?.tell({ MAINPID: pid, STATUS: `pid ${pid} took over` })
  }
}

/**
 * How the process ends. `stop`: after the queries in flight are answered. `give-back`: after clients can ask without namegate and
 * nothing is enforced. `detached`: nothing is enforced any more. `handed-over`: another process is the daemon.
 */
export type End = 'stop' | 'give-back' | 'detached' | 'handed-over'

export class Ending {
  /** Resolves at the first request for the end. */
  readonly asked: Promise<End>
  /** Resolves at the second request. */
  readonly hurried: Promise<void>
  #ask: (end: End) => void = () => undefined
  #hurry: () => void = () => undefined
  #isAsked = false

  constructor() {
    this.asked = new Promise((done) => (this.#ask = done))
    this.hurried = new Promise((done) => (this.#hurry = done))
  }

  /** Asks for the end. Returns true for the first request, and false for each later one. */
  end(how: End): boolean {
    const isFirst = !this.#isAsked
    this.#isAsked = true
    if (isFirst) this.#ask(how)
    else this.#hurry()
    return isFirst
  }
}

/** Throws InvalidInputError when the present files allow no daemon to start. Called before the running daemon gives up anything. */
function checkSources(config: Config): void {
  const datapath = openDatapath({ ...config, datapath: { ...config.datapath, kind: 'memory' } })
  const daemon = new Daemon({ config, log: SILENT, datapath })
  try {
    daemon.sources.load()
  } finally {
    daemon.proxy.stop()
  }
}
