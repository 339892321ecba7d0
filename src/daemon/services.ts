// Runs a daemon with its services: locks, state folder, admin API, metrics, flows. The process (process.ts) and the library
// (library/open-gate.ts) use this class. The class handles no signals and never ends the process, so one process can run several. Each
// DaemonServices is started once and stopped once. The stop has the reverse order of the start.

import { AdminServer } from '../admin/server.ts'
import { MetricsServer } from '../admin/metrics-server.ts'
import type { Page } from '../admin/page/page.ts'
import { PageServer } from '../admin/page/page-server.ts'
import type { AdminState, Detach } from '../admin/state.ts'
import { keptText } from '../admin/views/flows.ts'
import type { Config } from '../config/config.ts'
import { systemClock } from '../core/clock.ts'
import { UnavailableError } from '../core/errors.ts'
import { largeColumns } from '../core/tables/columns.ts'
import { Daemon } from './daemon.ts'
import { makeDaemonAdmin } from './admin.ts'
import { DaemonStateFolder } from './state-folder.ts'
import { loadPosix } from '../native/native.ts'
import { KeptFlows } from './open-flows.ts'
import type { OpenCluster } from './open-cluster.ts'
import { openDatapath } from './open-datapath.ts'
import { HugePages } from './huge-pages.ts'
import { quiet, TakenOn, type HandedOver } from '../handover/handing-over.ts'
import { Locks } from './locks.ts'
import type { MetricsSources } from './metrics-sources.ts'
import { reportAudit, reportRemovedSocket } from './log-reports.ts'
import type { HandedQuery, HandedSockets } from '../proxy/handed.ts'
import type { GivenSockets } from '../proxy/server/listeners.ts'
import { LimitHits } from '../telemetry/limits.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Log } from '../telemetry/log.ts'
import { PutBack } from '../telemetry/put-back.ts'

export interface ServicesOptions {
  readonly config: Config
  readonly log: Log
  /** True for each service that runs: the state folder, the socket of the admin API, the port of the metrics. */
  readonly outside: Readonly<Record<'state' | 'admin' | 'metrics', boolean>>
  /** Makes the function that removes all enforcement and ends the process. It returns undefined where nothing enforces. */
  readonly makeDetach?: (daemon: Daemon) => Detach | undefined
  readonly openCluster?: OpenCluster | undefined
  /** Sockets that were bound before the start. */
  readonly passed?: readonly GivenSockets[] | undefined
  /** Descriptors of the predecessor's locks. */
  readonly locks?: readonly number[]
  /** True if systemd keeps the listening sockets after this daemon ends. */
  readonly outlives?: boolean
  /** True: the daemon reads no query before `read` is called. */
  readonly isQuiet?: boolean
}

/** The longest wait for queries in flight at the end, also when `upstreams.timeout` is longer. */
const DRAIN_MAX_MS = 5000

export class DaemonServices {
  readonly daemon: Daemon
  readonly state: AdminState
  readonly putBack: PutBack
  readonly #log: Log
  readonly #metrics: Metrics<MetricsSources>
  readonly #hits: LimitHits
  readonly #hugePages: HugePages
  readonly #admin: AdminServer | undefined
  readonly #scrape: MetricsServer | undefined
  readonly #page: Page
  readonly #pageServer: PageServer | undefined
  readonly #flows: KeptFlows | undefined
  readonly #kept: DaemonStateFolder | undefined
  readonly #locks: Locks
  readonly #isQuiet: boolean
  /** True if the listening sockets stay open after this daemon ends. */
  readonly #outlives: boolean

  /** Takes the locks and the datapath. If it throws InvalidInputError or UnavailableError, it holds no locks. */
  constructor(options: ServicesOptions) {
    const { config, log, outside, makeDetach, passed, openCluster } = options
    this.#log = log
    this.#outlives = options.outlives ?? false
    this.#isQuiet = options.isQuiet ?? false
    this.putBack = new PutBack(systemClock, log)
    this.#locks = new Locks(config, log, outside.state, options.locks)
    try {
      const datapath = openDatapath(config)
      // Starts to read the kernel's entries now, so that they are read at the same time as the state folder.
      datapath.readAhead()
      this.#kept = outside.state
        ? new DaemonStateFolder(config, log, this.#locks, this.putBack)
        : undefined
      const kept = this.#kept?.forDaemon
      this.daemon = new Daemon({ config, log, passed, datapath, openCluster, ...kept })
    } catch (error) {
      this.#locks.release()
      throw error
    }
    const keepsFlows = outside.state && config.flows.outputs.length > 0
    this.#flows = keepsFlows ? this.#makeFlows(config, log) : undefined
    const { state, metrics, page } = makeDaemonAdmin(this.daemon, {
      detach: makeDetach?.(this.daemon),
      keptFlows: this.#flows,
      kept: this.#kept,
      putBack: this.putBack,
      onAudit: (endpoints, on) => reportAudit(log, endpoints, on),
    })
    this.state = state
    this.#metrics = metrics
    this.#page = page
    this.#hits = new LimitHits(() => state.limits(), systemClock, log)
    this.#hugePages = new HugePages({
      clock: systemClock,
      posix: loadPosix(),
      entries: () => this.daemon.core.names.eviction.uses().pairs,
      columns: largeColumns,
    })
    const onError = (error: unknown): void => log.error({ error: String(error) }, 'request failed')
    const { socket, page: pageConfig } = config.admin
    const api = {
      state,
      socket,
      page,
      onError,
      onRemoved: reportRemovedSocket(log, this.putBack, 'admin', socket),
    }
    this.#admin = outside.admin ? new AdminServer(api) : undefined
    if (outside.admin && pageConfig !== undefined) {
      this.#pageServer = new PageServer({ page, config: pageConfig, onError })
    }
    const scrape = { ...config.metrics, state, onError }
    this.#scrape = outside.metrics ? new MetricsServer(scrape) : undefined
  }

  #makeFlows(config: Config, log: Log): KeptFlows {
    const describe = (number: number): string => keptText(this.state, number)
    return new KeptFlows(config, this.daemon.flows, systemClock, log, describe)
  }

  /** The port of the metrics. Undefined before the start and without metrics. */
  get metricsPort(): number | undefined {
    return this.#scrape?.port
  }

  /** Starts the services and the daemon. The caller must call `stop`, also when `start` rejects. */
  async start(): Promise<void> {
    await this.#scrape?.start()
    await this.#admin?.start()
    await this.#pageServer?.start()
    this.#flows?.keeper.start()
    this.#kept?.start()
    await this.daemon.start(this.#isQuiet)
    this.#hits.start()
    this.#hugePages.start()
  }

  /** Begins to read the listening sockets, after a quiet start. */
  read(): void {
    this.daemon.proxy.listeners.reading(true)
  }

  /** Serves the clients of another daemon. Queries handed over by that daemon name connections by that daemon's numbers. */
  takeOn(sockets: HandedSockets): TakenOn {
    return new TakenOn(this.daemon.proxy, sockets)
  }

  /**
   * Ends everything except the wait for servers, and returns the sockets and locks for the successor. After `handOut`, only the successor
   * writes. `onQuery` receives each query when it ends. Rejects when a commit does not end, or when another daemon has the state folder;
   * then this daemon continues as before.
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

  /** Ends the wait for servers. The caller must have called `handOut`. */
  finish(): void {
    this.daemon.proxy.stop()
    this.#locks.release()
    this.#log.flush()
  }

  /** Refuses new queries and answers the queries in flight. Resolves when all are answered, or when `cut` resolves. */
  async drain(cut: Promise<void>): Promise<void> {
    const { config, interception, proxy } = this.daemon
    // With `on-exit: open`, later queries reach the servers without namegate.
    await interception.stop()
    void cut.then(() => proxy.drain.cut())
    const limitMs = Math.min(config.upstreams.timeoutMs, DRAIN_MAX_MS)
    const count = await proxy.drain.run(limitMs, this.#outlives)
    if (count > 0) this.#log.warn({ count }, 'queries in flight were refused at the end')
  }

  /** Ends everything. The kernel continues to enforce. */
  async stop(): Promise<void> {
    await this.#stopOthers(false)
    this.#locks.release()
    this.#log.flush()
  }

  async #stopOthers(goesOn: boolean): Promise<void> {
    this.#page.stop()
    await this.#pageServer?.stop()
    await this.#admin?.stop()
    await this.#scrape?.stop()
    this.#metrics.stop()
    this.#hits.stop()
    this.#hugePages.stop()
    this.putBack.stop()
    if (!goesOn) {
      await this.daemon.interception.stop()
      await this.daemon.cluster?.events?.release()
    }
    this.daemon.stop(goesOn)
    await this.#flows?.keeper.stop()
    await this.#kept?.close()
  }
}
