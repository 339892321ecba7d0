// One mode of namegate between clients and a scripted server, in network namespaces, with the memory datapath:
//
//   clients (pod1; in mode redirect the node itself) - node with namegate - 192.0.2.53, the server
//
// Clients ask the gateway in explicit mode. In the others they ask 10.96.0.10, which no host has. Every client address is an endpoint
// under the same policy, except `any`, which can ask everything, and `unknown`, which is no endpoint.

import { readFileSync, writeFileSync } from 'node:fs'
import { Agent } from './agent-client.ts'
import { TcpClient, UdpClient, type Asked } from './clients.ts'
import { ScriptedUpstream, type Transport } from './upstream.ts'
import { http } from '../../support/nodes/admin.ts'
import { endpointsText, policyText } from '../../support/nodes/daemon-files.ts'
import { DaemonFolder, PROGRAM } from '../../support/nodes/daemon-process.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'
import { DNS_4, OTHER_DNS_4, podLab, type PodLab } from '../../support/labs/lab-pod.ts'

export const MODES = ['explicit', 'tproxy', 'redirect'] as const
export type Mode = (typeof MODES)[number]

/** Names that policy lets clients ask, and names that it does not. Each name of a test is below one of them. */
export const ALLOWED = ['ok', 'test'] as const
export const REFUSED = ['no', 'test'] as const
export const SELECTOR = '**.ok.test'
/** Names that clients can ask only over that transport. */
export const ONE_TRANSPORT: Readonly<Record<Transport, readonly string[]>> = {
  udp: ['udp', 'test'],
  tcp: ['tcp', 'test'],
}
/** Bounds that tests reach. */
export const CONNECTIONS_PER_CLIENT = 32
export const IN_FLIGHT_PER_CLIENT = 120
export const UPSTREAM_TIMEOUT_MS = 4000
export const ATTEMPTS = 3
export const TCP_IDLE_MS = 6000
export const TCP_MESSAGE_MS = 3000
export const METRICS_PORT = 9465

/** `dns.protected-prefixes`: RFC 1918, a range of pods, the address of an API server, and a range of IPv6. */
export const PROTECTED = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.66.0.0/16',
  '203.0.113.6/32',
  'fd00:66::/32',
] as const

/** The number of shared clients. Other clients belong to one test each, because the test fills their bounds. */
const SHARED_CLIENTS = 12
const OWN_CLIENTS = [
  'many',
  'burst',
  'storm',
  'slow',
  'deaf',
  'piped',
  'twin0',
  'twin1',
  'twin2',
  'twin3',
] as const
const ANY = 'any'
const UNKNOWN = 'unknown'
export type OwnClient = (typeof OWN_CLIENTS)[number] | 'any' | 'unknown'

const PROXY_OUTSIDE = '192.0.2.1'
const NOWHERE = '10.96.0.10'
const LISTENERS: Readonly<Record<Mode, string>> = {
  explicit: '{ address: 10.20.1.1, port: 53, mode: explicit }',
  tproxy: '{ port: 10053, mode: tproxy, interfaces: ["lxc*"] }',
  redirect: '{ port: 5300, mode: redirect }',
}

export class World {
  readonly mode: Mode
  /** The address that clients ask. */
  readonly asked: Asked
  readonly lab: PodLab
  readonly folder: DaemonFolder
  readonly upstream: ScriptedUpstream
  readonly daemon: LabProcess
  readonly outside: Agent
  readonly clients: Agent
  #names = 0
  #addresses = 0
  #turn = 0

  private constructor(
    mode: Mode,
    parts: Pick<World, 'lab' | 'folder' | 'upstream' | 'daemon' | 'outside' | 'clients'>,
  ) {
    this.mode = mode
    this.asked = { address: mode === 'explicit' ? '10.20.1.1' : NOWHERE, port: 53 }
    this.lab = parts.lab
    this.folder = parts.folder
    this.upstream = parts.upstream
    this.daemon = parts.daemon
    this.outside = parts.outside
    this.clients = parts.clients
  }

  static async start(mode: Mode): Promise<World> {
    const lab = podLab({ pods: 2 })
    const begun: { stop(): Promise<void> }[] = []
    try {
      return await World.#startIn(lab, mode, begun)
    } catch (error) {
      for (const each of begun) await each.stop()
      await lab.close()
      throw error
    }
  }

  static async #startIn(
    lab: PodLab,
    mode: Mode,
    begun: { stop(): Promise<void> }[],
  ): Promise<World> {
    const [pod] = lab.pods
    if (pod === undefined) throw new Error('the lab has a pod')
    const host = mode === 'redirect' ? lab.node : pod.host
    const link = mode === 'redirect' ? 'lo' : 'eth0'
    for (const address of Object.values(addressesOf(mode))) {
      host.ip('address', 'add', `${address}/32`, 'dev', link)
    }
    const outside = await Agent.start(lab.internet)
    begun.push(outside)
    const clients = await Agent.start(host)
    begun.push(clients)
    const place = { address: DNS_4, other: OTHER_DNS_4, proxy: PROXY_OUTSIDE }
    const upstream = await ScriptedUpstream.start(outside, place)
    const folder = mkFolder(mode)
    begun.push({ stop: async () => await Promise.resolve(folder.remove()) })
    const daemon = lab.node.start(PROGRAM, ['run', '--config', 'namegate.yaml'], {
      cwd: folder.path,
      env: { NO_COLOR: '1' },
    })
    await daemon.untilOutput(/namegate serves/, 30_000)
    return new World(mode, { lab, folder, upstream, daemon, outside, clients })
  }

  async close(): Promise<void> {
    await this.daemon.stop()
    await Promise.all([this.outside.stop(), this.clients.stop()])
    await this.lab.close()
    this.folder.remove()
  }

  /** A name that no other test has. */
  name(under: readonly string[] = ALLOWED): readonly string[] {
    return [`n${++this.#names}`, ...under]
  }

  /** An address that no other answer has. */
  address(): string {
    const n = ++this.#addresses
    return `198.18.${n >> 8}.${n & 255}`
  }

  /** The address of a client. Undefined: any of the shared ones. */
  clientAddress(name?: OwnClient): string {
    const wanted = name ?? `c${this.#turn++ % SHARED_CLIENTS}`
    const address = addressesOf(this.mode)[wanted]
    if (address === undefined) throw new Error(`no client ${wanted}`)
    return address
  }

  async udp(client?: OwnClient, port = 0): Promise<UdpClient> {
    return await UdpClient.open(this.clients, this.clientAddress(client), this.asked, port)
  }

  async tcp(client?: OwnClient): Promise<TcpClient> {
    return await TcpClient.open(this.clients, this.clientAddress(client), this.asked)
  }

  /** Sends one message and returns the first reply. */
  async ask(transport: Transport, octets: Uint8Array, client?: OwnClient): Promise<Buffer> {
    const end = transport === 'udp' ? await this.udp(client) : await this.tcp(client)
    try {
      end.send(octets)
      const first = await end.inbox.at(0)
      return Buffer.isBuffer(first) ? first : first.octets
    } finally {
      end.close()
    }
  }

  /** The response of the admin API to a path. */
  async admin(path: string): Promise<unknown> {
    const answer = await http({ socketPath: this.folder.in('admin.sock') }, path)
    return JSON.parse(answer.text)
  }

  /** Labels of an address that come from answers. */
  async labelsOf(address: string): Promise<readonly string[]> {
    const rows = (await this.admin('/v1/ipcache')) as { prefix: string; labels: string[] }[]
    const found = rows.find(({ prefix }) => prefix === `${address}/32`)
    return (found?.labels ?? []).filter((label) => label.startsWith('fqdn:'))
  }

  /** Runs `act`. Returns how many octets the daemon's resident memory grew at its peak. */
  async memoryGrownIn(act: () => Promise<void>): Promise<number> {
    const file = (name: string): string => `/proc/${this.daemon.pid}/${name}`
    const read = (key: string): number =>
      Number(
        new RegExp(`^${key}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(file('status'), 'utf8'))?.[1],
      ) * 1024
    writeFileSync(file('clear_refs'), '5') // from here on the highest counts (proc(5))
    const before = read('VmRSS')
    await act()
    return read('VmHWM') - before
  }

  /** The text of /metrics. */
  async metrics(): Promise<string> {
    const url = `http://127.0.0.1:${METRICS_PORT}/metrics`
    const { stdout, stderr, code } = await this.lab.node.run('curl', ['-sS', url])
    if (code !== 0) throw new Error(`metrics: ${stderr}`)
    return stdout
  }

  /** The sum of a counter over its series whose labels contain all of these texts. */
  async counter(name: string, ...having: readonly string[]): Promise<number> {
    const lines = (await this.metrics()).split('\n')
    return lines
      .filter((line) => line.startsWith(name) && having.every((text) => line.includes(text)))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
  }
}

/** Addresses by client. */
function addressesOf(mode: Mode): Readonly<Record<string, string>> {
  const base = mode === 'redirect' ? '10.21.0' : '10.20.1'
  const shared = Array.from({ length: SHARED_CLIENTS }, (_, i) => `c${i}`)
  const names = [...shared, ...OWN_CLIENTS, ANY, UNKNOWN]
  return Object.fromEntries(names.map((name, i) => [name, `${base}.${10 + i}`]))
}

function mkFolder(mode: Mode): DaemonFolder {
  const { [UNKNOWN]: _, ...known } = addressesOf(mode)
  // The rule of `any` has no selector, so the labels of the other clients' names come only from their selector.
  const everything = policyText('any', ['*'], { app: ANY }).replace(/^.*toFQDNs.*\n/m, '')
  const own = policyText('app', [SELECTOR], { app: 'app' })
  return new DaemonFolder({
    files: {
      'policy.yaml': [own, everything, oneTransport('udp'), oneTransport('tcp')].join('---\n'),
      'endpoints.yaml': endpointsText(known, (name) => (name === ANY ? ANY : 'app')),
    },
    config: {
      listeners: `[${LISTENERS[mode]}]`,
      intercept: `{ on-start: ${mode !== 'explicit'} }`,
      upstreams: `{ servers: ["${DNS_4}:53"], timeout: ${UPSTREAM_TIMEOUT_MS}ms, attempts: ${ATTEMPTS} }`,
      dns: `{ protected-prefixes: [${PROTECTED.map((prefix) => `"${prefix}"`).join(', ')}] }`,
      'unknown-clients': '{ wait: 50ms }',
      metrics: `{ address: 127.0.0.1, port: ${METRICS_PORT} }`,
      limits: `{ queries-in-flight-per-client: ${IN_FLIGHT_PER_CLIENT}, tcp-connections-per-client: ${CONNECTIONS_PER_CLIENT}, tcp-idle-timeout: ${TCP_IDLE_MS}ms, tcp-message-timeout: ${TCP_MESSAGE_MS}ms }`,
    },
  })
}

function oneTransport(transport: Transport): string {
  const name = `**.${ONE_TRANSPORT[transport].join('.')}`
  const text = policyText(`${transport}-only`, [name], { app: 'app' }).replace(
    /^.*toFQDNs.*\n/m,
    '',
  )
  return text.replace("port: '53'", `port: '53', protocol: ${transport.toUpperCase()}`)
}
