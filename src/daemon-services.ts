// The daemon with what stands around it: locks, settings made at run time, admin API, metrics. The process
// (run-daemon.ts) and the library (library/gate.ts) run the same one. Nothing here touches the process itself:
// no signals, no exit; several can live in one process. Start once, stop once, in reverse.

import { join } from 'node:path'
import { AdminServer } from './admin/server.ts'
import { MetricsServer } from './admin/metrics-server.ts'
import type { AdminState } from './admin/state.ts'
import { keptText } from './admin/views/flows.ts'
import type { Config } from './config/config.ts'
import type { KeptState } from './control/keeping.ts'
import { systemClock } from './core/clock.ts'
import { Daemon } from './daemon.ts'
import { makeDaemonAdmin } from './daemon-admin.ts'
import { loadPosix } from './native/native.ts'
import { KeptFlows } from './open-flows.ts'
import { openDatapath } from './open-datapath.ts'
import { openKeptState } from './open-kept-state.ts'
import { ResourceShards } from './state/resource-shards.ts'
import { readSettings } from './state/settings-file.ts'
import { SettingsKeeper } from './state/settings-keeper.ts'
import type { StateStore } from './state/state-store.ts'
import { quiet, TakenOn, type HandedOver } from './handing-over.ts'
import { Locks } from './locks.ts'
import type { HandedQuery, HandedSockets } from './proxy/handed.ts'
import type { GivenSockets } from './proxy/listeners.ts'
import type { Metrics } from './telemetry/metrics.ts'
import type { Log } from './telemetry/log.ts'

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
  readonly #log: Log
  readonly #metrics: Metrics
  readonly #admin: AdminServer | undefined
  readonly #scrape: MetricsServer | undefined
  readonly #flows: KeptFlows | undefined
  readonly #store: StateStore | undefined
  readonly #settings: SettingsKeeper
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
    this.#locks = new Locks(config, log, outside.state, options.locks)
    try {
      const opened = outside.state ? openKeptState(config, log) : undefined
      this.#store = opened?.store
      this.#settings = makeSettings(config, log)
      this.daemon = makeDaemon(config, log, opened?.kept, this.#settings, passed)
    } catch (error) {
      this.#locks.release()
      throw error
    }
    const keepsFlows = outside.state && config.flows.outputs.length > 0
    this.#flows = keepsFlows ? this.#makeFlows(config, log) : undefined
    const detach = makeDetach?.(this.daemon)
    const kept = this.#store && keptOf(this.#store, this.#settings)
    const { state, metrics } = makeDaemonAdmin(this.daemon, detach, this.#flows, kept)
    this.state = state
    this.#metrics = metrics
    const onError = (error: unknown): void => log.error({ error: String(error) }, 'request failed')
    const { socket } = config.admin
    this.#admin = outside.admin ? new AdminServer({ state, socket, onError }) : undefined
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
    await this.daemon.start()
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
   * it writes anything from then on. Queries go to `onQuery` as they end. Rejects when the datapath comes to no end, and
   * then all is as before.
   */
  async handOut(onQuery: (handed: HandedQuery) => void): Promise<HandedOver> {
    const { daemon } = this
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
    if (!goesOn) await this.daemon.interception.stop()
    this.daemon.stop(goesOn)
    await this.#flows?.keeper.stop()
    this.#settings.stop()
    await this.#store?.close()
  }
}

function settingsFile({ state }: Config): string {
  return join(state.directory, 'settings.json')
}

function makeSettings(config: Config, log: Log): SettingsKeeper {
  const onFault = (reason: string): void => {
    log.limited('settings', { reason }, 'settings are in force until a restart: not kept')
  }
  return new SettingsKeeper({ file: settingsFile(config), clock: systemClock, onFault })
}

/** What the disk has of us, settings included. */
function keptOf(store: StateStore, settings: SettingsKeeper): AdminState['kept'] {
  return {
    get use() {
      const { use } = store
      return { ...use, isFailing: use.isFailing || settings.isFailing }
    },
  }
}

function makeDaemon(
  config: Config,
  log: Log,
  kept: KeptState | undefined,
  keeper: SettingsKeeper,
  passed: ServicesOptions['passed'],
): Daemon {
  const shared = { config, log, kept, passed, datapath: openDatapath(config, systemClock) }
  if (kept === undefined) return new Daemon(shared)
  const settings = readSettings(settingsFile(config))
  if (settings.fault !== undefined) log.warn({ fault: settings.fault }, 'settings passed over')
  return new Daemon({
    ...shared,
    auditSettings: settings.audit,
    saveAudit: (audit) => keeper.save(audit),
    resourceKeeper: new ResourceShards({
      folder: join(config.state.directory, 'resources'),
      onFault: (fault) => log.warn({ fault }, 'kept resources passed over'),
    }),
  })
}
