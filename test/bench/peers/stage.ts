// The place of all runs: pod (load) - node (the proxy) - internet (the upstream), network namespaces joined by veth pairs as in
// test/support/labs/lab-pod.ts. The proxy under test is alone on one CPU. Load and upstream share the other CPU, the same for all
// proxies. The sender of a packet pays for its way through the kernel. So the generator pays for the programs on a pod's
// interface for queries, and the proxy pays for answers.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DNS_4, podLab, type Pod, type PodLab } from '../../support/labs/lab-pod.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'
import { parseLoadResult, type LoadResult, type Usage } from './load-result.ts'

export const PROXY_CPU = 0
export const LOAD_CPU = availableParallelism() > 1 ? 1 : 0
export const STEADY_NAMES = 20_000
export const SUFFIX = 'bench.test'
const SOURCES = fileURLToPath(new URL('.', import.meta.url))
/** USER_HZ, the unit of /proc/PID/stat on every machine Linux runs on. */
const TICK_US = 10_000

export interface LoadRequest {
  readonly mode: 'udp' | 'tcp' | 'tcp-single'
  readonly server: string
  readonly known: boolean
  /** Queries a second. 0: as fast as answers arrive. */
  readonly rate: number
  /** Ends after so many queries, or after `seconds`. */
  readonly count?: number
  readonly seconds: number
}

export interface Measured {
  readonly load: LoadResult
  readonly proxy: Usage | undefined
  readonly upstreamCpuUs: number
  /** Number of CPUs that other processes on the machine kept busy meanwhile. */
  readonly others: number
}

export class Stage {
  readonly lab: PodLab
  readonly #tools: string
  readonly #first: boolean
  #upstream: LabProcess | undefined
  /** The lowest number that no name has had. */
  #next = 0

  /** With `first`, the measured processes run before all others on the machine. */
  constructor(cache: string, first: boolean) {
    this.#first = first
    this.#tools = compile(cache)
    this.lab = podLab({ pods: 1 })
    const { host } = this.pod
    host.sysctl('net.ipv4.tcp_tw_reuse=1', 'net.ipv4.ip_local_port_range=1024 65535')
    this.lab.node.sysctl('net.ipv4.ip_local_port_range=1024 65535', 'net.core.somaxconn=4096')
    this.lab.internet.sysctl('net.core.somaxconn=4096')
  }

  get pod(): Pod {
    const [pod] = this.lab.pods
    if (pod === undefined) throw new Error('the lab has no pod')
    return pod
  }

  async startUpstream(delayUs = 0): Promise<void> {
    await this.#upstream?.stop()
    const args = [join(this.#tools, 'upstream'), DNS_4, '53', `${delayUs}`]
    this.#upstream = this.lab.internet.start('taskset', [...this.#on(LOAD_CPU), ...args])
    await this.#upstream.untilOutput(/^ready$/m)
  }

  /** Starts a proxy in the node, on its CPU. */
  start(
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): LabProcess {
    return this.lab.node.start('taskset', [...this.#on(PROXY_CPU), command, ...args], { env })
  }

  /** Runs the load. `pid` is the proxy's, 0 for none. */
  async load(request: LoadRequest, pid: number): Promise<Measured> {
    const { mode, server, known, rate, count = 0, seconds } = request
    const sockets = mode === 'tcp-single' ? 1 : 16
    const outstanding = mode === 'tcp-single' ? 32 : 200
    const numbers = [
      known ? 0 : this.#next,
      STEADY_NAMES,
      sockets,
      outstanding,
      rate,
      count,
      seconds,
    ]
    const args = [mode, server, '53', known ? 'k' : 'n', ...numbers.map(String)]
    const before = this.#usage(pid)
    const command = [...this.#on(LOAD_CPU), join(this.#tools, 'load'), ...args]
    const limitMs = (seconds + 20) * 1000
    const output = await this.pod.host.run('taskset', command, { limitMs })
    if (output.code !== 0) throw new Error(`Cannot load: ${output.stderr}`)
    const after = this.#usage(pid)
    const load = parseLoadResult(output.stdout)
    if (!known) this.#next = load.next
    const proxy = between(before.proxy, after.proxy)
    const upstreamCpuUs = between(before.upstream, after.upstream)?.cpuUs ?? NaN
    const own = (proxy?.cpuUs ?? 0) + upstreamCpuUs + load.cpuNs / 1000
    const others = Math.max(0, after.busyUs - before.busyUs - own) / (after.atUs - before.atUs)
    return { load, proxy, upstreamCpuUs, others }
  }

  /** Arguments of taskset(1). A nice value would not help: where the kernel groups sessions, it counts only inside the group,
   *  and a wakeup waits for the slice of the running process. */
  #on(cpu: number): readonly string[] {
    return ['-c', `${cpu}`, ...(this.#first ? ['chrt', '--rr', '1'] : [])]
  }

  #usage(pid: number) {
    const upstream = usageOf(this.#upstream?.pid ?? 0)
    return { proxy: usageOf(pid), upstream, busyUs: busyUs(), atUs: performance.now() * 1000 }
  }

  async close(): Promise<void> {
    await this.#upstream?.stop()
    await this.lab.close()
  }
}

/** Microseconds that all CPUs together were busy since the machine started, including interrupts and steal (proc(5)). */
function busyUs(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number)
  return (user + nice + system + irq + softirq + steal) * TICK_US
}

function between(before: Usage | undefined, after: Usage | undefined): Usage | undefined {
  if (before === undefined || after === undefined) return undefined
  return { cpuUs: after.cpuUs - before.cpuUs, residentBytes: after.residentBytes }
}

/** utime + stime of the process with all its threads, and its resident memory (proc(5)). */
export function usageOf(pid: number): Usage | undefined {
  if (pid === 0 || !existsSync(`/proc/${pid}/stat`)) return undefined
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[11]) + Number(fields[12])
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1])
  return { cpuUs: ticks * TICK_US, residentBytes: kilobytes * 1024 }
}

/** Compiles the two C programs if they are older than their sources. Returns their folder. */
function compile(cache: string): string {
  mkdirSync(cache, { recursive: true })
  const programs = { load: ['load.c', 'load-streams.c', 'load-single.c'], upstream: ['upstream.c'] }
  for (const [name, files] of Object.entries(programs)) {
    const target = join(cache, name)
    const sources = [...files, 'load.h', 'wire.h'].map((file) => join(SOURCES, file))
    const made = existsSync(target) ? statSync(target).mtimeMs : 0
    if (sources.every((file) => statSync(file).mtimeMs < made)) continue
    const args = ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-pthread', '-o', target]
    execFileSync('gcc', [...args, ...files.map((file) => join(SOURCES, file))], {
      stdio: 'inherit',
    })
  }
  return cache
}
