// A network namespace of this process with rules and programs of namegate, an endpoint that sends random packets (random-packets.c), and
// a watch over every way out. Each case has a namespace of its own, which ends when the next case begins, or with the process.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../src/core/clock.ts'
import { EbpfDatapath } from '../../../src/datapath/ebpf/adapter.ts'
import { cgroupMount } from '../../../src/native/cgroup-mount.ts'
import type { Hook } from '../../../src/datapath/entries.ts'
import type { Datapath } from '../../../src/datapath/datapath.ts'
import { NftablesDatapath } from '../../../src/datapath/nftables/adapter.ts'
import { Rules } from '../../../src/intercept/rules.ts'
import { runTool } from '../../../src/intercept/tools.ts'
import { loadBpf, loadNetlink, loadPosix } from '../../../src/native/native.ts'
import { batch, commit, endpoint, listener, policy, POD_4, POD_6 } from '../../contract/bench.ts'
import { KNOWN, POLICIES } from '../models/random-packets.ts'
import { at, mkPlan } from './intercept-plans.ts'
import { Lab, type Host } from './lab.ts'
import { LabProcess, run } from './lab-process.ts'

const HERE = '02:00:00:00:00:01'
const THERE = '02:00:00:00:00:02'
const GATEWAY = ['10.255.0.1', 'fd01::1'] as const
const PORT = 10053
/** Flags of `watch`. */
const REDIRECTED = 1
const ANY_SOURCE = 2
const SETTINGS: readonly (readonly [name: string, value: string])[] = [
  ['ipv4/ip_forward', '1'],
  ['ipv6/conf/all/forwarding', '1'],
  ['ipv4/conf/all/rp_filter', '0'],
  ['ipv4/conf/default/rp_filter', '0'],
  ['ipv6/conf/default/accept_dad', '0'],
]
const OWN = GATEWAY.map((each) => [each, 1, 1] as const)
export interface PacketCase {
  readonly datapath: 'ebpf' | 'nftables'
  readonly mode: 'tproxy' | 'redirect' | 'explicit'
  /** Where the endpoint is fenced: the host side of its veth, a veth without an endpoint, a port of a bridge, its own
   *  interface, its cgroup. */
  readonly place: 'veth' | 'fence' | 'bridge' | 'inside' | 'cgroup'
}

/** The counts of a watch, as random-packets.c prints them. */
interface Seen {
  readonly open: number
  readonly ports: number
  readonly leaks: number
  readonly lost: number
}

export interface Outcome {
  readonly open: number
  readonly ports: number
  readonly leaks: readonly string[]
  readonly counters: Readonly<Record<string, number>>
}

export class PacketSite {
  readonly #case: PacketCase
  readonly #program: string
  readonly #lab = new Lab()
  readonly #posix = loadPosix()
  readonly #pins = mkdtempSync(join(tmpdir(), 'namegate-bpf-'))
  readonly #cgroup = `namegate-packets-${process.pid}`
  readonly #datapath: Datapath
  readonly #watches: LabProcess[] = []
  readonly #outside: Host
  #pod: Host | undefined

  constructor(kind: PacketCase, program: string) {
    this.#case = kind
    this.#program = program
    assert.equal(this.#posix.unshareNetwork(), 0)
    assert.equal(this.#posix.mountBpf(this.#pins), 0)
    for (const [name, value] of SETTINGS) writeFileSync(`/proc/sys/net/${name}`, value)
    ip('link', 'set', 'lo', 'up')
    this.#outside = this.#lab.addHost('outside')
    if (this.#isInside) this.#linkWorld([POD_4, POD_6])
    else this.#linkGateway()
    this.#datapath = this.#makeDatapath()
  }

  async start(): Promise<void> {
    const { mode, place } = this.#case
    const datapath = this.#datapath
    datapath.start()
    datapath.exceptions.setListeners(
      mode === 'explicit'
        ? GATEWAY.map((each) => listener(each, 53))
        : [listener('0.0.0.0', PORT), listener('::', PORT)],
    )
    if (place === 'fence') datapath.fences.set(['lxc*'])
    else datapath.fences.set([])
    const failures = commit(datapath, {
      prefixUpserts: batch(this.#isInside ? KNOWN : [...KNOWN, ...OWN]),
      policyUpserts: POLICIES.map(policy),
      endpointUpserts: place === 'fence' ? [] : [endpoint({ hook: this.#hook() })],
    })
    assert.deepEqual(failures, [])
    datapath.hooks.refresh()
    if (mode !== 'explicit') {
      const flags = {
        read: () => datapath.exceptions.intercepted(),
        set: datapath.exceptions.setIntercepted.bind(datapath.exceptions),
      }
      const rules = new Rules({ run: runTool, flags, forgetFlows: () => 0 })
      const where =
        mode === 'tproxy' ? `, interfaces: ['${this.#isInside ? 'uplink' : 'lxc*'}']` : ''
      const plan = mkPlan({ listeners: `{ port: ${PORT}, mode: ${mode}${where} }`, uid: 65_533 })
      await rules.up(plan, at())
    }
    const isRedirected = mode === 'redirect' || (mode === 'tproxy' && !this.#isInside)
    const flags = (isRedirected ? REDIRECTED : 0) | (place === 'cgroup' ? ANY_SOURCE : 0)
    for (const host of this.#lab.hosts) {
      if (host === this.#pod) continue
      const watch = host.start(this.#program, ['watch', 'eth0', String(flags)])
      this.#watches.push(watch)
      await watch.untilOutput(/^ready$/m)
    }
  }

  /** Sends packets FIRST to FIRST + COUNT, the first half with a listener. */
  async send(seed: number, first: number, count: number): Promise<number> {
    const half = Math.floor(count / 2)
    const listening = new LabProcess(this.#program, ['listen', String(PORT)])
    await listening.untilOutput(/^ready$/m)
    const sent = await this.#send(seed, first, half)
    await listening.stop()
    return sent + (await this.#send(seed, first + half, count - half))
  }

  async close(): Promise<Outcome> {
    const outcome = { open: 0, ports: 0, leaks: [] as string[] }
    for (const watch of this.#watches) {
      watch.kill('SIGTERM')
      const ended = await watch.ended(60_000)
      const lines = ended?.stdout.trim().split('\n') ?? []
      const seen = JSON.parse(lines.at(-1) ?? '') as Seen
      outcome.open += seen.open
      outcome.ports += seen.ports
      outcome.leaks.push(...lines.filter((line) => line.startsWith('leak')))
      assert.equal(seen.lost, 0, 'the watch saw everything')
      assert.equal(seen.leaks > 0, outcome.leaks.length > 0)
    }
    const counters = this.#datapath.reports.counters()
    this.#datapath.stop({ leaveEnforcing: false })
    await this.#lab.close()
    this.#posix.unmount(this.#pins)
    rmdirSync(this.#pins)
    if (existsSync(this.#cgroupPath)) rmdirSync(this.#cgroupPath)
    return { ...outcome, counters }
  }

  get #isInside(): boolean {
    return this.#case.place === 'inside' || this.#case.place === 'cgroup'
  }

  get #cgroupPath(): string {
    return join(cgroupMount() ?? '', this.#cgroup)
  }

  async #send(seed: number, first: number, count: number): Promise<number> {
    const where = [seed, first, count].map(String)
    const limit = { limitMs: 10_000 + count }
    const push = [this.#program, 'push', ...where]
    const enter = ['-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', this.#cgroupPath]
    const ended = await (this.#pod !== undefined
      ? this.#pod.run(this.#program, ['send', 'eth0', ...where], limit)
      : this.#case.place === 'cgroup'
        ? run('sh', [...enter, ...push], limit)
        : run('env', push, limit))
    assert.equal(ended.code, 0, ended.stderr)
    return Number(ended.stdout)
  }

  #hook(): Hook {
    switch (this.#case.place) {
      case 'cgroup':
        mkdirSync(this.#cgroupPath, { recursive: true })
        return { kind: 'cgroup', path: this.#cgroup }
      case 'inside':
        return { kind: 'interface', name: 'uplink', side: 'egress' }
      case 'veth':
      case 'fence':
      case 'bridge':
        return { kind: 'interface', name: 'lxc1', side: 'ingress' }
    }
  }

  #makeDatapath(): Datapath {
    const posix = this.#posix
    if (this.#case.datapath === 'nftables') {
      const sizes = { prefixesMax: 1024, policyEntriesMax: 1024 }
      return new NftablesDatapath({ netlink: loadNetlink(), posix, clock: systemClock, ...sizes })
    }
    return new EbpfDatapath({
      bpf: loadBpf(),
      posix,
      pinPath: join(this.#pins, 'case'),
      isInUse: () => false,
      sizes: { ng_ipcache: 1024, ng_hosts: 1024, ng_policy: 1024 },
      connections: 4096,
      endpointsMax: 16,
      connectionsPerEndpoint: 4096,
      tcpIdleMs: 60_000,
      udpIdleMs: 60_000,
    })
  }

  /** Makes this namespace the gateway: on one side the endpoint, with a second one if there is a bridge, on the other side the world. */
  #linkGateway(): void {
    const isBridge = this.#case.place === 'bridge'
    const near = isBridge ? 'br0' : 'lxc1'
    this.#pod = this.#lab.addHost('pod')
    if (isBridge) ip('link', 'add', 'br0', 'address', HERE, 'type', 'bridge')
    this.#link('lxc1', this.#pod, isBridge ? THERE.replace('02', '06') : HERE)
    if (isBridge) {
      this.#link('lxc2', this.#lab.addHost('beside'), THERE.replace('02', '0a'))
      for (const port of ['lxc1', 'lxc2']) ip('link', 'set', port, 'master', 'br0')
      ip('link', 'set', 'br0', 'up')
    }
    ip('route', 'add', '10.0.1.0/24', 'dev', near)
    ip('-6', 'route', 'add', 'fd00::/64', 'dev', near)
    for (const address of ['10.0.1.5', '10.0.1.6', 'fd00::5', 'fd00::6']) {
      ip('neigh', 'add', address, 'lladdr', THERE, 'dev', near, 'nud', 'permanent')
    }
    this.#linkWorld(GATEWAY)
  }

  #linkWorld(addresses: readonly [string, string]): void {
    this.#link('uplink', this.#outside, '02:00:00:00:00:03')
    const ways = ['10.255.0.2', 'fd01::2'] as const
    for (const [i, way] of ways.entries()) {
      ip('address', 'add', addresses[i] ?? '', 'dev', 'uplink')
      ip('neigh', 'add', way, 'lladdr', THERE, 'dev', 'uplink', 'nud', 'permanent')
      const family = i === 0 ? '-4' : '-6'
      ip(family, 'route', 'add', 'default', 'via', way, 'dev', 'uplink', 'onlink')
    }
  }

  #link(name: string, host: Host, address: string): void {
    const peer = ['peer', 'name', 'eth0', 'netns', host.namespace]
    ip('link', 'add', name, 'address', address, 'type', 'veth', ...peer)
    ip('link', 'set', name, 'up')
    host.ip('link', 'set', 'eth0', 'address', THERE)
    host.ip('link', 'set', 'eth0', 'up')
  }
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', [...args], { stdio: ['ignore', 'ignore', 'inherit'] })
}
