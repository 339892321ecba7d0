// Hosts made from network namespaces, for kernel tests and the demo. A lab makes namespaces and the veth pairs between them, runs commands
// inside, and removes all of it: at `close`, at every end of the process that it can notice, and for killed runs at the start of the next
// lab. The machine's own network stays unchanged.
// Commands enter by `nsenter --net`, not `ip netns exec`, which would hide bpffs and cgroup2 behind a new /sys.

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { LabProcess, run, type Output, type SpawnOptions } from './lab-process.ts'

const NAMESPACES = '/run/netns'
/** `ng-<pid of the maker>-<host>`. The pid tells leftovers from labs in use. */
const NAME = /^ng-(\d+)-/
/** Makes local addresses usable at once, without duplicate address detection, and turns off the reverse path filter. */
const SYSCTLS = [
  'net.ipv4.conf.all.rp_filter=0',
  'net.ipv4.conf.default.rp_filter=0',
  'net.ipv6.conf.all.disable_ipv6=0',
  'net.ipv6.conf.default.disable_ipv6=0',
  'net.ipv6.conf.all.accept_dad=0',
  'net.ipv6.conf.default.accept_dad=0',
  'net.ipv6.conf.default.router_solicitations=0',
]

const open = new Set<Lab>()

/** The reason why labs cannot be used here, or undefined. Cheap after the first call. */
export function canUseLab(): string | undefined {
  refusal ??= { reason: findRefusal() }
  return refusal.reason
}

let refusal: { readonly reason: string | undefined } | undefined

function findRefusal(): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  try {
    execFileSync('nsenter', ['--version'], { stdio: 'ignore' })
    const probe = `ng-${process.pid}-probe`
    ip('netns', 'add', probe)
    ip('netns', 'del', probe)
    return undefined
  } catch (error) {
    return `network namespaces cannot be made: ${error instanceof Error ? firstLine(error.message) : 'unknown'}`
  }
}

function firstLine(text: string): string {
  return text.split('\n').find((line) => line.trim() !== '') ?? ''
}

/** `ip ARGS`. Throws its message. */
function ip(...args: readonly string[]): string {
  return ipWithInput('', ...args)
}

function ipWithInput(input: string, ...args: readonly string[]): string {
  return execFileSync('ip', args, { input, encoding: 'utf8', stdio: 'pipe' })
}

/** One network namespace and its processes. */
export class Host {
  readonly role: string
  readonly namespace: string
  readonly #processes: LabProcess[] = []

  constructor(role: string, namespace: string) {
    this.role = role
    this.namespace = namespace
  }

  /** `ip` inside this host, e.g. `host.ip('route', 'add', ...)`. */
  ip(...args: readonly string[]): string {
    return ip('-n', this.namespace, ...args)
  }

  /** Several commands of `ip` inside this host, by one process. The form of an address shows its family. */
  ipBatch(...commands: readonly string[]): void {
    ipWithInput(commands.join('\n'), '-n', this.namespace, '-batch', '-')
  }

  /** `key=value` pairs of sysctl(8). */
  sysctl(...settings: readonly string[]): void {
    execFileSync('nsenter', [this.#net, 'sysctl', '-qe', '-w', ...settings], { stdio: 'pipe' })
  }

  /** Starts a process inside. The lab stops it at its end. */
  start(command: string, args: readonly string[], options: SpawnOptions = {}): LabProcess {
    const started = new LabProcess('nsenter', [this.#net, '--', command, ...args], options)
    this.#processes.push(started)
    return started
  }

  /** Runs a command inside to its end. */
  async run(
    command: string,
    args: readonly string[],
    options: SpawnOptions & { readonly limitMs?: number } = {},
  ): Promise<Output> {
    return await run('nsenter', [this.#net, '--', command, ...args], options)
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.#processes.map(async (each) => await each.stop()))
  }

  killAll(): void {
    for (const each of this.#processes) each.kill('SIGKILL')
  }

  get #net(): string {
    return `--net=${NAMESPACES}/${this.namespace}`
  }
}

/** One end of a veth pair: the interface's name and its addresses with length. */
export interface End {
  readonly host: Host
  readonly interface: string
  readonly addresses: readonly string[]
}

/** The commands of `ip` that give an interface its addresses and set it up. */
function settingUp(end: End): readonly string[] {
  const addresses = end.addresses.map((address) => {
    const nodad = address.includes(':') ? ' nodad' : ''
    return `address add ${address} dev ${end.interface}${nodad}`
  })
  return [...addresses, `link set ${end.interface} up`]
}

export class Lab {
  readonly hosts: Host[] = []

  constructor() {
    sweepDeadLabs()
    if (open.size === 0) watchForTheEnd()
    open.add(this)
  }

  addHost(role: string): Host {
    const host = new Host(role, `ng-${process.pid}-${role}`)
    ip('netns', 'add', host.namespace)
    this.hosts.push(host)
    host.sysctl(...SYSCTLS)
    host.ip('link', 'set', 'lo', 'up')
    return host
  }

  /** Makes a veth pair between two hosts and sets it up. Its addresses are usable at once. */
  link(a: End, b: End): void {
    const peer = `peer name ${b.interface} netns ${b.host.namespace}`
    a.host.ipBatch(`link add ${a.interface} type veth ${peer}`, ...settingUp(a))
    b.host.ipBatch(...settingUp(b))
  }

  /** Stops the processes in the hosts and removes the hosts. */
  async close(): Promise<void> {
    await Promise.all(this.hosts.map(async (host) => await host.stopAll()))
    this.closeNow()
  }

  /** Closes without waiting, for the end of the process. */
  closeNow(): void {
    for (const host of this.hosts) {
      host.killAll()
      removeNamespace(host.namespace)
    }
    this.hosts.length = 0
    open.delete(this)
  }
}

/** Kills the processes in the namespace, then removes it with its interfaces. */
function removeNamespace(namespace: string): void {
  if (!existsSync(`${NAMESPACES}/${namespace}`)) return
  try {
    for (const pid of ip('netns', 'pids', namespace).split('\n').filter(Boolean))
      killHard(Number(pid))
    ip('netns', 'del', namespace)
  } catch {
    // Another lab has already removed it.
  }
}

function killHard(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has already ended.
  }
}

/** Removes the namespaces of makers that no longer exist. */
function sweepDeadLabs(): void {
  for (const name of existsSync(NAMESPACES) ? readdirSync(NAMESPACES) : []) {
    const maker = NAME.exec(name)?.[1]
    if (maker !== undefined && !existsSync(`/proc/${maker}`)) removeNamespace(name)
  }
}

let watching = false

/** `exit` covers errors and normal ends. A signal becomes an exit. */
function watchForTheEnd(): void {
  if (watching) return
  watching = true
  process.on('exit', () => {
    for (const lab of open) lab.closeNow()
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => process.exit(130))
  }
}
