// The daemon inside the test process, with real files and sockets, and a clock that advances only when the test says so.

import {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { AdminState } from '../../../src/admin/state.ts'
import { loadConfig } from '../../../src/config/load.ts'
import type { StateFolder } from '../../../src/restore/state-port.ts'
import type { Clock } from '../../../src/core/clock.ts'
import { Daemon } from '../../../src/daemon/daemon.ts'
import { makeDaemonAdmin } from '../../../src/daemon/admin.ts'
import { openDatapath } from '../../../src/daemon/open-datapath.ts'
import { openLog, type Log } from '../../../src/telemetry/log.ts'
import type { MemoryApi } from '../kubernetes/memory-api.ts'
import { modelCluster } from '../kubernetes/model-cluster.ts'
import { until } from '../peers/client.ts'
import { mkFolder } from '../nodes/daemon-files.ts'
import { DnsClient, type Told } from '../peers/dns-client.ts'
import { FakeClock } from '../fake-clock.ts'
import { socketClock } from '../peers/forwarder.ts'
import { FakeUpstream } from '../peers/upstream.ts'

export interface DaemonLabOptions {
  /** Path inside the folder -> text. */
  readonly files: Readonly<Record<string, string>>
  readonly policies?: readonly string[]
  /** More keys of `policies`, such as `ingress: ignore`. */
  readonly policyKeys?: string
  readonly endpoints?: readonly string[]
  readonly resources?: readonly string[]
  readonly watch?: boolean
  /** More lines of the config. */
  readonly config?: string
  /** What outlives the process, for a daemon whose files are in this folder. Without it, nothing does. */
  readonly kept?: (folder: string) => StateFolder
  /** The cluster of the daemon. Its configuration needs `kubernetes`. */
  readonly cluster?: (clock: FakeClock) => MemoryApi
  /** Called before the daemon reads anything. */
  readonly prepare?: (folder: string) => void
}

/** Runs a test over one daemon, and stops the daemon in any case. */
export async function withLab(
  options: DaemonLabOptions,
  run: (lab: DaemonLab) => Promise<void>,
): Promise<void> {
  const lab = await DaemonLab.start(options)
  try {
    await run(lab)
  } finally {
    await lab.stop()
  }
}

export class DaemonLab {
  readonly folder: string
  readonly daemon: Daemon
  readonly admin: AdminState
  readonly upstream: FakeUpstream
  readonly logged: readonly string[]
  /** Runs when the daemon reads the time. */
  onNow: () => void = () => undefined
  readonly #fake = new FakeClock()
  readonly #clients = new Map<string, DnsClient>()
  /** The text of `/metrics`. */
  readonly metrics: () => Promise<string>
  readonly #end: () => void

  private constructor(
    folder: string,
    upstream: FakeUpstream,
    logged: string[],
    log: Log,
    { kept, cluster }: DaemonLabOptions,
  ) {
    this.folder = folder
    this.upstream = upstream
    this.logged = logged
    const config = loadConfig(join(folder, 'namegate.yaml'))
    const clock = this.#clock()
    const api = cluster?.(this.#fake)
    this.daemon = new Daemon({
      config,
      log,
      clock,
      kept: kept?.(folder),
      datapath: openDatapath(config),
      ...(api && { openCluster: (parts) => modelCluster({ ...parts, config, log, api }) }),
    })
    const { state, metrics } = makeDaemonAdmin(this.daemon)
    this.admin = state
    this.metrics = async () => await metrics.expose()
    this.#end = () => metrics.stop()
  }

  static async start(options: DaemonLabOptions): Promise<DaemonLab> {
    const folder = mkFolder()
    const upstream = await FakeUpstream.start()
    const logged: string[] = []
    for (const [path, text] of Object.entries(options.files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    options.prepare?.(folder)
    writeFileSync(join(folder, 'namegate.yaml'), configText(folder, upstream.port, options))
    const fake = new FakeClock()
    const log = await openLog({
      level: 'info',
      format: 'json',
      clock: fake,
      write: (line) => void logged.push(line),
    })
    const lab = new DaemonLab(folder, upstream, logged, log, options)
    try {
      await lab.daemon.start()
    } catch (error) {
      await lab.stop()
      throw error
    }
    return lab
  }

  async stop(): Promise<void> {
    for (const client of this.#clients.values()) client.close()
    this.daemon.stop()
    this.#end()
    await this.upstream.stop()
    rmSync(this.folder, { recursive: true })
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  write(name: string, text: string): void {
    writeFileSync(this.path(name), text)
    this.#touched(name)
  }

  append(name: string, text: string): void {
    appendFileSync(this.path(name), text)
    this.#touched(name)
  }

  empty(name: string): void {
    truncateSync(this.path(name))
  }

  remove(name: string): void {
    rmSync(this.path(name))
  }

  rename(from: string, to: string): void {
    renameSync(this.path(from), this.path(to))
  }

  /** Advances the time, and waits for the effects of due timers. */
  async pass(ms: number): Promise<void> {
    this.#fake.advance(ms)
    // Labels move between turns of the event loop.
    await turn()
    await until('labels to have moved', () => !this.daemon.transition.pending)
  }

  async ask(name: string, from = '127.0.0.1'): Promise<Told> {
    const [port = 0] = this.daemon.proxy.listeners.entries.map((entry) => entry.port)
    const client = this.#clients.get(from) ?? (await DnsClient.open(port, from))
    this.#clients.set(from, client)
    return await client.ask(name)
  }

  /** `NOERROR`, or the code and extended error. */
  async verdict(name: string, from?: string): Promise<string> {
    const { rcode, ede } = await this.ask(name, from)
    return ede === undefined ? rcode : `${rcode} ${ede}`
  }

  /** Two writes within one tick of the file system's clock differ only in size. */
  #touched(name: string): void {
    const { mtimeMs } = statSync(this.path(name))
    while (performance.timeOrigin + performance.now() < mtimeMs + 5);
  }

  #clock(): Clock {
    const clock = socketClock(this.#fake)
    return {
      ...clock,
      now: () => {
        this.onNow()
        return clock.now()
      },
    }
  }
}

function configText(folder: string, port: number, options: DaemonLabOptions): string {
  const { policies = ['policy.yaml'], endpoints = ['endpoints.yaml'], resources = [] } = options
  const paths = (names: readonly string[]) =>
    JSON.stringify(names.map((name) => join(folder, name)))
  return `listeners: [{ address: 127.0.0.1, port: 0, mode: explicit }]
upstreams: { servers: ["127.0.0.1:${port}"] }
policies: { paths: ${paths(policies)}, watch: ${options.watch ?? true}, ${options.policyKeys ?? ''} }
endpoints: { files: ${paths(endpoints)} }
resources: { files: ${paths(resources)} }
state: { directory: ${join(folder, 'state')} }
admin: { socket: ${join(folder, 'admin.sock')} }
metrics: { address: 127.0.0.1, port: 0 }
${options.config ?? ''}`
}
