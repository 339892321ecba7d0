// A lab for changes of the process: clients at a steady rate, flows that policy allows, flows that policy denies, and a daemon that is
// taken over, restarted or killed meanwhile. With passed sockets, a supervisor starts the daemon again.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Host } from './lab.ts'
import { DNS_4, podLab, type PodLab } from './lab-pod.ts'
import { Namegate } from './lab-namegate.ts'
import type { LabProcess } from './lab-process.ts'
import { PROGRAM } from '../nodes/daemon-process.ts'
import { SteadyLoad, type LoadCount } from '../peers/steady-load.ts'
import { Supervise } from '../peers/supervise.ts'
import { Talk, startEcho } from '../peers/traffic.ts'
import { UdpStream, type StreamCount } from '../peers/udp-stream.ts'

const SITE = 'www.site.test'
const [ALLOWED_PORT, CLOSED_PORT, TALK_PORT] = [7001, 7009, 7000]
const NOWHERE = '10.96.0.10'
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: site }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress:
    - toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '**.test' }] } }]
    - toFQDNs: [{ matchPattern: '**.test' }]
      toPorts: [{ ports: [{ port: '${ALLOWED_PORT}', protocol: UDP }, { port: '${TALK_PORT}', protocol: TCP }] }]
`

/** Queries that waited while no process read arrive together, all from one client. */
const LIMITS = `limits:
  queries-in-flight-per-client: 65536
  tcp-connections: 65536
  tcp-connections-per-client: 65536
  names-per-wildcard: 1000000
  wildcard-names-per-endpoint: 1000000
  pairs-per-endpoint: 1000000`

const CATCH_UP_MS = 60_000
const AT_ONCE_MS = 50
const TRIES_MAX = 5

export type Interception = 'explicit' | 'tproxy' | 'redirect'

export interface Rates {
  readonly udp: number
  readonly tcp: number
  /** Datagrams a second in all flows. */
  readonly flows: number
}

export interface ChangeSiteOptions {
  readonly interception: Interception
  readonly datapath: 'ebpf' | 'nftables'
  readonly rates: Rates
  /** Whether a supervisor keeps the listening sockets, and starts the daemon again after its end. */
  readonly supervised: boolean
}

export interface ChangeCount {
  readonly udp: LoadCount
  readonly tcp: LoadCount
  readonly flows: StreamCount
  /** Datagrams dropped at full sockets of clients, daemon or name server, by host. */
  readonly overruns: string
}

/** The place of the listener, and the supervisor's names for its IPv4 sockets. */
const LISTENERS: Readonly<
  Record<
    Interception,
    { readonly item: string; readonly place: string; readonly config: readonly string[] }
  >
> = {
  explicit: {
    item: '{ address: 10.20.1.1, port: 53, mode: explicit }',
    place: '10.20.1.1:53',
    config: [],
  },
  tproxy: {
    item: '{ port: 10053, mode: tproxy }',
    place: '0.0.0.0:10053:t',
    config: ['intercept: { on-start: true }'],
  },
  redirect: {
    item: '{ port: 5300, mode: redirect }',
    place: '0.0.0.0:5300',
    config: ['intercept: { on-start: true }'],
  },
}

export class ChangeSite {
  readonly #to: ChangeSiteOptions
  readonly #lab: PodLab = podLab()
  readonly #load = new SteadyLoad()
  readonly #supervise = new Supervise()
  readonly #namegate: Namegate
  /** The daemon, or the supervisor that keeps it running. */
  #process: LabProcess | undefined
  #flows: UdpStream | undefined
  #talk: Talk | undefined

  constructor(options: ChangeSiteOptions) {
    const { interception, datapath } = options
    this.#to = options
    const isInside = interception === 'redirect'
    const hook = isInside ? 'interface: eth0, hook: egress' : 'interface: lxc1'
    const { item, config } = LISTENERS[interception]
    this.#namegate = new Namegate(isInside ? { node: this.#pod, pods: [] } : this.#lab, {
      policies: { 'site.yaml': POLICY },
      endpoints: [`{ name: pod1, addresses: [10.20.1.2], labels: { app: shop }, ${hook} }`],
      listenerItems: [item],
      ...(datapath === 'ebpf' ? {} : { datapath: '{ kind: nftables }' }),
      config: [...config, LIMITS].join('\n'),
    })
  }

  get #pod(): Host {
    return this.#lab.pods[0]!.host
  }

  /** The host of the daemon. */
  get #node(): Host {
    return this.#to.interception === 'redirect' ? this.#pod : this.#lab.node
  }

  get #server(): string {
    return this.#to.interception === 'explicit' ? '10.20.1.1' : NOWHERE
  }

  async start(): Promise<void> {
    await Promise.all([
      this.#load.serve(this.#lab.internet, DNS_4),
      startEcho(this.#lab.internet, TALK_PORT),
    ])
    if (this.#to.supervised) this.#process = this.#startSupervised()
    else await this.#namegate.start({ attached: [] })
    const address = await this.#ask(SITE)
    this.#talk = await Talk.open(this.#pod, address, TALK_PORT)
    this.#flows = await UdpStream.start({
      from: this.#pod,
      to: this.#lab.internet,
      rate: this.#to.rates.flows,
      sockets: 8,
      targets: [
        { address, port: ALLOWED_PORT, isAllowed: true },
        { address, port: CLOSED_PORT, isAllowed: false },
      ],
    })
  }

  /** Asks at a quarter of the clients' rate for this time. */
  async warmUp(ms: number): Promise<void> {
    const { udp, tcp } = this.#to.rates
    const rates = { udpRate: udp / 4, tcpRate: tcp / 4, keepsConnections: true }
    this.#load.begin({ host: this.#pod, server: this.#server, ...rates })
    await sleep(ms)
    await this.#load.stop()
  }

  /** Starts the clients. */
  ask(options: { readonly keepsConnections: boolean; readonly retryMs?: number }): void {
    const { udp, tcp } = this.#to.rates
    const where = { host: this.#pod, server: this.#server, udpRate: udp, tcpRate: tcp }
    this.#load.begin({ ...where, ...options })
  }

  /**
   * Starts a successor. Resolves when the successor serves and the source has ended. On a busy machine a successor can be late, and the
   * source then continues; the attempt is repeated.
   */
  async takeOver(): Promise<void> {
    const before = this.#process ?? this.#namegate.daemon
    const args = ['run', '--take-over', '--config', this.#namegate.configFile]
    for (let tries = 1; ; tries++) {
      const next = this.#node.start(PROGRAM, args)
      const fault: unknown = await next.untilOutput(/namegate serves/, 60_000).then(
        () => undefined,
        (error: unknown) => error,
      )
      if (fault === undefined) {
        this.#process = next
        break
      }
      const isLate = before.running && /was not ready in time/.test(before.stderr)
      if (isLate && tries < TRIES_MAX) continue
      throw new Error(`the source printed: ${before.stdout}${before.stderr}`, { cause: fault })
    }
    assert.equal((await before.ended(20_000))?.code, 0, before.stderr)
  }

  /** Ends the daemon by a signal. Resolves when the supervisor's next one serves. */
  async restart(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const gate = this.#process
    assert.ok(gate !== undefined && this.#to.supervised)
    const goal = served(gate) + 1
    process.kill(Number([...gate.stdout.matchAll(/started (\d+)/g)].at(-1)?.[1]), signal)
    await gate.until(() => (served(gate) >= goal ? true : undefined), 'it serves again', 60_000)
  }

  /** Waits until the daemon has handled the queries that waited. */
  async caughtUp(): Promise<void> {
    const deadline = performance.now() + CATCH_UP_MS
    for (;;) {
      const { stdout } = await this.#pod.run('dig', ['+tries=1', `@${this.#server}`, SITE])
      if (Number(/Query time: (\d+) msec/.exec(stdout)?.[1] ?? NaN) < AT_ONCE_MS) return
      assert.ok(performance.now() < deadline, `it does not catch up: ${stdout}`)
    }
  }

  /**
   * Stops clients and flows, and counts their results. The connection beside them must still be open, and the kernel must have what the
   * daemon wants.
   */
  async count(): Promise<ChangeCount> {
    assert.ok(this.#flows !== undefined && this.#talk !== undefined)
    const [udp, tcp] = await this.#load.stop()
    const flows = await this.#flows.stop()
    await this.#talk.moves(1, 10_000)
    const { code, stdout } = await this.#namegate.run('datapath', 'verify')
    assert.equal(code, 0, stdout)
    return { udp, tcp, flows, overruns: await this.#overruns() }
  }

  async close(): Promise<void> {
    await this.#process?.stop()
    await this.#namegate.close()
    await this.#lab.close()
  }

  async #overruns(): Promise<string> {
    const hosts = new Set([this.#pod, this.#node, this.#lab.internet])
    const texts = [...hosts].map(async (host) => {
      const { stdout } = await host.run('cat', ['/proc/net/snmp'])
      const [names = [], counts = []] = stdout
        .split('\n')
        .filter((line) => line.startsWith('Udp:'))
        .map((line) => line.split(' '))
      return `${host.role} ${counts[names.indexOf('RcvbufErrors')] ?? '?'}`
    })
    return (await Promise.all(texts)).join(', ')
  }

  #startSupervised(): LabProcess {
    const { place } = LISTENERS[this.#to.interception]
    const run = [PROGRAM, 'run', '--config', this.#namegate.configFile]
    const args = ['activate', `udp:${place},tcp:${place}`, ...run]
    return this.#node.start(this.#supervise.program, args)
  }

  async #ask(name: string): Promise<string> {
    const gate = this.#process
    if (gate !== undefined) await gate.untilOutput(/namegate serves/, 60_000)
    const { stdout } = await this.#pod.run('dig', ['+short', `@${this.#server}`, name])
    assert.match(stdout, /^198\.18\./)
    return stdout.trim()
  }
}

function served(gate: LabProcess): number {
  return gate.stderr.split('namegate serves').length - 1
}
