// The daemon as one process, from its start to its end, across take-overs. It may begin with what another process hands over, may
// hand everything over itself, and resumes when the successor fails. At any time one `DaemonServices` serves.

import type { Config } from '../config/config.ts'
import { systemClock } from '../core/clock.ts'
import { Daemon } from './daemon.ts'
import { DaemonServices, type ServicesOptions } from './services.ts'
import { Supervised } from './supervised.ts'
import { HandoverSource } from '../handover/source.ts'
import { ConnectSocket, connectPathOf } from '../handover/connect.ts'
import type { HandedOver } from '../handover/handing-over.ts'
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
  readonly makeDetach: (daemon: Daemon) => (() => void) | undefined
}

/** Queries in flight at the end of a daemon get no more than this. */
const IN_FLIGHT_MAX_MS = 5000

/** Where queries of another daemon come from. */
type Hear = (onQuery: (handed: HandedQuery) => void) => void

export class DaemonProcess {
  readonly ending = new Ending()
  readonly #to: DaemonProcessOptions
  #notifier: Notifier | undefined
  #services: DaemonServices | undefined
  #supervised: Supervised | undefined
  #connectSocket: ConnectSocket | undefined
  #isHandingOver = false

  constructor(options: DaemonProcessOptions) {
    this.#to = options
    this.#notifier = openNotifier(options.supervisor)
  }

  /** The daemon that serves now. */
  get daemon(): Daemon | undefined {
    return this.#services?.daemon
  }

  /** Starts over what is there. Whoever calls this calls `stop`, also when it rejects. */
  async start(): Promise<void> {
    const { passed } = this.#to
    await this.#serve({ passed, outlives: passed !== undefined })
    this.#openConnectSocket()
  }

  /** Starts with what the running daemon has; rejects with UnavailableError when that one goes on, as after a signal. */
  async takeOver(): Promise<void> {
    const { config } = this.#to
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

  /** Answers what is in flight, as far as that is wanted, and ends everything. */
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
    const { config, log, makeDetach } = this.#to
    const outside = { state: true, admin: true, metrics: true }
    const services = new DaemonServices({ config, log, outside, makeDetach, ...more })
    this.#services = services
    await services.start()
    return services
  }

  /** Starts over sockets and locks of another daemon, and goes on with its clients when `go` says so. */
  async #resume(handed: HandedOver, go: () => Promise<Hear>): Promise<void> {
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
    const { log, config } = this.#to
    if (this.#services === undefined) return
    const { daemon, putBack } = this.#services
    if (this.#notifier !== undefined) {
      this.#supervised = new Supervised({ daemon, notifier: this.#notifier, clock: systemClock })
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
      log.warn({ reason: String(error) }, 'nobody can take over from this daemon')
    }
  }

  async #give(descriptor: number): Promise<void> {
    const { log, config } = this.#to
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
    try {
      const end = await source.run(services)
      if (end.kind === 'gone') {
        services.finish()
        this.#services = undefined
        this.ending.end('handed-over')
      } else if (end.kind === 'refused') {
        log.warn({ reason: end.reason }, 'a take-over was refused')
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

  /** What was `services` waits for servers until nothing of it is in flight; a new one serves. */
  async #comeBack(before: DaemonServices, handed: HandedOver, hear: Hear): Promise<void> {
    this.#supervised?.stop()
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
    this.#to.log.info({ pid }, 'another process goes on as the daemon')
    this.#supervised?.stop()
    this.#connectSocket?.close()
    this.#notifier?.tell({ MAINPID: pid, STATUS: `pid ${pid} took over` })
  }
}

/** `stop`: answers what is in flight first. `detached`: nothing is enforced any more. `handed-over`: another process goes on. */
export type End = 'stop' | 'detached' | 'handed-over'

export class Ending {
  /** Resolves when the end is asked for. */
  readonly asked: Promise<End>
  /** Resolves when it is asked for once more. */
  readonly hurried: Promise<void>
  #ask: (end: End) => void = () => undefined
  #hurry: () => void = () => undefined
  #isAsked = false

  constructor() {
    this.asked = new Promise((done) => (this.#ask = done))
    this.hurried = new Promise((done) => (this.#hurry = done))
  }

  /** Whether that is the first time. */
  end(how: End): boolean {
    const isFirst = !this.#isAsked
    this.#isAsked = true
    if (isFirst) this.#ask(how)
    else this.#hurry()
    return isFirst
  }
}

/** Whether a daemon could start with the files as they are, before anybody gives up anything for it; throws InvalidInputError. */
function checkSources(config: Config): void {
  const datapath = openDatapath({ ...config, datapath: { ...config.datapath, kind: 'memory' } })
  const daemon = new Daemon({ config, log: SILENT, datapath })
  try {
    daemon.sources.load()
  } finally {
    daemon.proxy.stop()
  }
}
