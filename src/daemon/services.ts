// The daemon with its services: locks, state folder, admin API, metrics, flows. The process (process.ts) and the library
// (library/open-gate.ts) run the same one. It leaves the process alone (no signals, no exit), so that several can live in one
// process. Start once, stop once, in reverse.

import { AdminServer } from '../admin/server.ts'
import { MetricsServer } from '../admin/metrics-server.ts'
import type { AdminState } from '../admin/state.ts'
import { keptText } from '../admin/views/flows.ts'
import type { Config } from '../config/config.ts'
import { systemClock } from '../core/clock.ts'
import { UnavailableError } from '../core/errors.ts'
import { Daemon } from './daemon.ts'
import { makeDaemonAdmin } from './admin.ts'
import { DaemonStateFolder } from './state-folder.ts'
import { loadPosix } from '../native/native.ts'
import { KeptFlows } from './open-flows.ts'
import { openDatapath } from './open-datapath.ts'
import { quiet, TakenOn, type HandedOver } from '../handover/handing-over.ts'
import { Locks } from './locks.ts'
import { reportRemovedSocket } from './log-reports.ts'
import type { HandedQuery, HandedSockets } from '../proxy/handed.ts'
import type { GivenSockets } from '../proxy/server/listeners.ts'
import { LimitHits } from '../telemetry/limit-hits.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Log } from '../telemetry/log.ts'
import { PutBack } from '../telemetry/put-back.ts'

export interface ServicesOptions {
  readonly config: Config
  readonly log: Log
  /** What there is of the outside: a folder for settings, a socket for the admin API, a port for metrics. */
  readonly outside: Readonly<Record<'state' | 'admin' | 'metrics', boolean>>
  /** Makes what takes all enforcement away and ends; gives undefined where nothing enforces. */
  readonly makeDetach?: (daemon: Daemon) => (() => void) | undefined
  /** Sockets that were bound before we started. */
  readonly passed?: readonly GivenSockets[] | undefined
  /** Locks of the daemon before us. */
  readonly locks?: readonly number[]
  /** Whether somebody keeps our listening sockets when we end. */
  readonly outlives?: boolean
  /** Nothing is read before `read`. */
  readonly isQuiet?: boolean
}

/** Queries in flight at the end get no more than this, however long the config lets them take. */
const DRAIN_MAX_MS = 5000

export class DaemonServices {
  readonly daemon: Daemon
  readonly state: AdminState
  readonly putBack: PutBack
  readonly #log: Log
  readonly #metrics: Metrics
  readonly #hits: LimitHits
  readonly #admin: AdminServer | undefined
  readonly #scrape: MetricsServer | undefined
  readonly #flows: KeptFlows | undefined
  readonly #kept: DaemonStateFolder | undefined
  readonly #locks: Locks
  readonly #isQuiet: boolean
  /** Whether our listening sockets live on without us. */
  readonly #outlives: boolean

  /** Takes the locks and the datapath; throws InvalidInputError or UnavailableError, and then holds nothing. */
  constructor(options: ServicesOptions) {
    const { config, log, outside, makeDetach, passed } = options
    this.#log = log
    this.#outlives = options.outlives ?? false
    this.#isQuiet = options.isQuiet ?? false
    this.putBack = new PutBack(systemClock, log)
    this.#locks = new Locks(config, log, outside.state, options.locks)
    try {
      const datapath = openDatapath(config)
      // What the kernel has is read beside what the disk has.
      datapath.readAhead()
      const { putBack } = this
      const files = { config, log, locks: this.#locks, putBack }
      this.#kept = outside.state ? new DaemonStateFolder(files) : undefined
      this.daemon = new Daemon({ config, log, passed, datapath, ...this.#kept?.forDaemon })
    } catch (error) {
      this.#locks.release()
      throw error
    }
    const keepsFlows = outside.state && config.flows.outputs.length > 0
    this.#flows = keepsFlows ? this.#makeFlows(config, log) : undefined
    const detach = makeDetach?.(this.daemon)
    const { state, metrics } = makeDaemonAdmin(
      this.daemon,
      detach,
      this.#flows,
      this.#kept,
      this.putBack,
    )
    this.state = state
    this.#metrics = metrics
    this.#hits = new LimitHits({ limits: () => state.limits(), clock: systemClock, log })
    const onError = (error: unknown): void => log.error({ error: String(error) }, 'request failed')
    const { socket } = config.admin
    const api = {
      state,
      socket,
      onError,
      onRemoved: reportRemovedSocket(log, this.putBack, 'admin', socket),
    }
    this.#admin = outside.admin ? new AdminServer(api) : undefined
    const scrape = { ...config.metrics, state, onError }
    this.#scrape = outside.metrics ? new MetricsServer(scrape) : undefined
  }

  #makeFlows(config: Config, log: Log): KeptFlows {
    const describe = (number: number): string => keptText(this.state, number)
    return new KeptFlows({ config, log, ring: this.daemon.flows, clock: systemClock, describe })
  }

  /** The port of the metrics; undefined when there are none, or before the start. */
  get metricsPort(): number | undefined {
    return this.#scrape?.port
  }

  /** Whoever calls this calls `stop`, also when it throws. */
  async start(): Promise<void> {
    await this.#scrape?.start()
    await this.#admin?.start()
    this.#flows?.keeper.start()
    this.#kept?.start()
    await this.daemon.start()
    this.#hits.start()
    if (!this.#isQuiet) this.read()
  }

  /** Begins with what waits in sockets that were bound before we started. */
  read(): void {
    this.daemon.proxy.listeners.reading(true)
  }

  /** Goes on with what another daemon had of its clients; queries name connections by numbers of the other one. */
  takeOn(sockets: HandedSockets): TakenOn {
    return new TakenOn(this.daemon.proxy, sockets)
  }

  /**
   * Ends everything but the wait for servers, and gives away what clients and the kernel have of us: nobody but who takes
   * it writes anything from then on. Queries go to `onQuery` as they end. Rejects when the datapath comes to no end, or the
   * state folder is another daemon's, and then all is as before.
   */
  async handOut(onQuery: (handed: HandedQuery) => void): Promise<HandedOver> {
    const { daemon } = this
    if (this.#kept?.use.taken !== undefined) {
      throw new UnavailableError('another daemon has the state folder of the running one')
    }
    daemon.proxy.listeners.reading(false)
    try {
      await quiet(daemon)
    } catch (error) {
      this.read()
      throw error
    }
    const posix = loadPosix()
    const sockets = daemon.proxy.handOut((descriptor) => posix.duplicate(descriptor), onQuery)
    await this.#stopOthers(true)
    return { ...sockets, locks: this.#locks.duplicate(), outlives: this.#outlives }
  }

  /** After `handOut`: waits for servers no more. */
  finish(): void {
    this.daemon.proxy.stop()
    this.#locks.release()
    this.#log.flush()
  }

  /** Takes on nothing new and answers what is in flight; resolves when that is done, or `cut` says so. */
  async drain(cut: Promise<void>): Promise<void> {
    const { config, interception, proxy } = this.daemon
    // Where it opens DNS again, what comes from now on goes its own way.
    await interception.stop()
    void cut.then(() => proxy.drain.cut())
    const limitMs = Math.min(config.upstreams.timeoutMs, DRAIN_MAX_MS)
    const count = await proxy.drain.run(limitMs, this.#outlives)
    if (count > 0) this.#log.warn({ count }, 'queries in flight were refused at the end')
  }

  /** Everything down; what the kernel enforces stays in force. */
  async stop(): Promise<void> {
    await this.#stopOthers(false)
    this.#locks.release()
    this.#log.flush()
  }

  async #stopOthers(goesOn: boolean): Promise<void> {
    await this.#admin?.stop()
    await this.#scrape?.stop()
    this.#metrics.stop()
    this.#hits.stop()
    this.putBack.stop()
    if (!goesOn) await this.daemon.interception.stop()
    this.daemon.stop(goesOn)
    await this.#flows?.keeper.stop()
    await this.#kept?.close()
  }
}
