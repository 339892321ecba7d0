// The daemon with what stands around it: locks, settings made at run time, admin API, metrics. The process
// (run-daemon.ts) and the library (library/gate.ts) run the same one. Nothing here touches the process itself:
// no signals, no exit; several can live in one process. Start once, stop once, in reverse.

import { join, resolve } from 'node:path'
import { AdminServer } from './admin/server.ts'
import { MetricsServer } from './admin/metrics-server.ts'
import type { AdminState } from './admin/state.ts'
import { keptText } from './admin/views/flows.ts'
import type { Config } from './config/config.ts'
import type { KeptState } from './control/keeping.ts'
import { systemClock } from './core/clock.ts'
import { Daemon } from './daemon.ts'
import { makeDaemonAdmin } from './daemon-admin.ts'
import { isBuilt, loadPosix } from './native/native.ts'
import { KeptFlows } from './open-flows.ts'
import { openDatapath } from './open-datapath.ts'
import { openKeptState } from './open-kept-state.ts'
import { lockOrFail, pinLockFile, tableLockFile } from './state/lock.ts'
import { ResourceShards } from './state/resource-shards.ts'
import { readSettings, writeSettings } from './state/settings-file.ts'
import type { StateStore } from './state/state-store.ts'
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
  readonly #unlock: () => void
  /** Whether our listening sockets live on without us. */
  readonly #outlives: boolean

  /** Takes the locks and the datapath; throws InvalidInputError or UnavailableError, and then holds nothing. */
  constructor({ config, log, outside, makeDetach, passed }: ServicesOptions) {
    this.#log = log
    this.#outlives = passed !== undefined
    this.#unlock = takeLocks(config, log, outside.state)
    try {
      const opened = outside.state ? openKeptState(config, log) : undefined
      this.#store = opened?.store
      this.daemon = makeDaemon(config, log, opened?.kept, passed)
    } catch (error) {
      this.#unlock()
      throw error
    }
    const keepsFlows = outside.state && config.flows.outputs.length > 0
    this.#flows = keepsFlows ? this.#makeFlows(config, log) : undefined
    const detach = makeDetach?.(this.daemon)
    const { state, metrics } = makeDaemonAdmin(this.daemon, detach, this.#flows, this.#store)
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
    await this.#admin?.stop()
    await this.#scrape?.stop()
    this.#metrics.stop()
    await this.daemon.interception.stop()
    this.daemon.stop()
    await this.#flows?.keeper.stop()
    await this.#store?.close()
    this.#unlock()
    this.#log.flush()
  }
}

function makeDaemon(
  config: Config,
  log: Log,
  kept: KeptState | undefined,
  passed: ServicesOptions['passed'],
): Daemon {
  const shared = { config, log, kept, passed, datapath: openDatapath(config, systemClock) }
  if (kept === undefined) return new Daemon(shared)
  const file = join(config.state.directory, 'settings.json')
  const settings = readSettings(file)
  if (settings.fault !== undefined) log.warn({ fault: settings.fault }, 'settings passed over')
  return new Daemon({
    ...shared,
    auditSettings: settings.audit,
    saveAudit: (audit) => writeSettings(file, audit),
    resourceKeeper: new ResourceShards({
      folder: join(config.state.directory, 'resources'),
      onFault: (fault) => log.warn({ fault }, 'kept resources passed over'),
    }),
  })
}

/** One daemon per state folder and pin path or table; returns what gives it back. Without the native part there is no lock, and that is said. */
export function takeLocks(config: Config, log: Log, keepsState: boolean): () => void {
  const folder = resolve(config.state.directory)
  if (!isBuilt('posix')) {
    if (keepsState) {
      log.warn({ path: folder }, 'state folder is not locked: the native part is not built')
    }
    return () => undefined
  }
  const posix = loadPosix()
  const held: (() => void)[] = []
  const unlock = (): void => {
    for (const release of held.splice(0)) release()
  }
  try {
    if (keepsState) held.push(lockOrFail(posix, join(folder, 'lock'), `state folder ${folder}`))
    if (config.datapath.kind === 'ebpf') {
      const { pinPath } = config.datapath
      held.push(lockOrFail(posix, pinLockFile(pinPath), `pin path ${pinPath}`))
    } else if (config.datapath.kind === 'nftables') {
      held.push(lockOrFail(posix, tableLockFile(), 'the nftables table of this network namespace'))
    }
    return unlock
  } catch (error) {
    unlock()
    throw error
  }
}
