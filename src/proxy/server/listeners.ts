// Listeners opens a UDP and a TCP socket on the same port for each configured address. All sockets fill one batch.
// `start` opens all sockets or none.

import type { Clock } from '../../core/clock.ts'
import { formatAddress, type Family } from '../../core/ip.ts'
import type { Limits } from '../../core/limits.ts'
import { invariant } from '../../core/invariant.ts'
import type { ListenerEntry } from '../../datapath/entries.ts'
import type { ListenerConfig, ListenerMode } from '../../config/config.ts'
import { defaultAddress, EVERY_ADDRESS } from './listener-places.ts'
import { DNS_PORT } from '../../policy/compile/dns-rules.ts'
import { type MessageBatch, BatchCollector } from '../messages/batch.ts'
import type { ClientColumns } from '../messages/client-columns.ts'
import type { Datagrams } from '../sockets/datagrams.ts'
import type { HandedSockets } from '../handed.ts'
import type { Streams } from '../sockets/streams.ts'
import type { UdpListener } from '../sockets/udp-listener.ts'
import { TcpServer } from './tcp-server.ts'

export interface ListenersOptions {
  readonly clock: Clock
  readonly limits: Limits
  readonly configs: readonly ListenerConfig[]
  /** True if this host supports IPv6. Otherwise a listener without an address listens on IPv4 only. */
  readonly hasIpv6: boolean
  /** Opens the UDP sockets. */
  readonly datagrams: Datagrams
  /** Opens the TCP sockets. */
  readonly streams: Streams
  readonly onBatch: (batch: MessageBatch) => void
  /** Sockets that were bound before. A configured listener uses the sockets that match it. */
  readonly given?: readonly GivenSockets[] | undefined
}

/** UDP and TCP sockets that are bound to the port of one listener. They can belong to another network namespace. */
export interface GivenSockets {
  readonly family: Family
  /** Address of the listener that uses the sockets; absent: any listener of the family. */
  readonly octets?: Uint8Array
  readonly port?: number
  /** The descriptors, which belong to this process. Undefined: the listener binds a socket itself. */
  readonly udp: number | undefined
  readonly tcp: number | undefined
}

export interface BoundListener {
  readonly family: Family
  readonly octets: Uint8Array
  readonly port: number
  readonly mode: ListenerMode
}

/** How many free ports a listener with port 0 tries. If TCP uses half of all ports, 1 start in 65,536 fails. */
const DRAWS_MAX = 16

export class Listeners {
  readonly udp: UdpListener[] = []
  readonly tcp: TcpServer
  readonly #options: ListenersOptions
  readonly #collector: BatchCollector
  #bound: BoundListener[] = []

  constructor(options: ListenersOptions) {
    const { clock, limits } = options
    this.#options = options
    this.#collector = new BatchCollector({
      clock,
      onBatch: options.onBatch,
      batch: { stride: limits['udp-message'] },
    })
    options.datagrams.fill(this.#collector)
    this.tcp = new TcpServer({
      clock,
      collector: this.#collector,
      streams: options.streams,
      limits: {
        connections: limits['tcp-connections'],
        connectionsPerClient: limits['tcp-connections-per-client'],
        queriesPerConnection: limits['queries-per-tcp-connection'],
        idleTimeout: limits['tcp-idle-timeout'],
        messageTimeout: limits['tcp-message-timeout'],
      },
    })
  }

  /**
   * The listeners whose packets the datapath passes without a rule. Valid after `start`. A transparent listener on port 53 is not in
   * the list. Until interception is in force, another resolver can have this port on an address of the node.
   */
  get entries(): readonly ListenerEntry[] {
    return this.#bound.filter(({ mode, port }) => mode !== 'tproxy' || port !== DNS_PORT)
  }

  /** All bound listeners. Valid after `start`. */
  get bound(): readonly BoundListener[] {
    return this.#bound
  }

  /** Returns true if a packet to this address arrives at a listener without interception. `isNode`: the address is the node's own. */
  receives(octets: Uint8Array, port: number, isNode: boolean): boolean {
    return this.entries.some((entry) => {
      if (entry.port !== port) return false
      return entry.octets.every((octet) => octet === 0)
        ? isNode
        : entry.octets.every((octet, i) => octet === octets[i])
    })
  }

  /** Returns true if a client sent a query to a transparent listener itself. Interception redirects only queries to port 53. */
  isDirect(clients: ClientColumns, row: number): boolean {
    const asked = clients.askedPorts[row]!
    if (asked === DNS_PORT) return false
    for (const { mode, port, family, octets } of this.#bound) {
      if (mode !== 'tproxy' || port !== asked || family !== clients.families[row]) continue
      if (isAt(octets, clients.askedAddresses, row * 16)) return true
    }
    return false
  }

  /** The listeners as text, such as `127.0.0.1:5300`, `[::]:53` or `0.0.0.0:10053 (tproxy)`. Valid after `start`. */
  get texts(): readonly string[] {
    return this.#bound.map(({ family, octets, port, mode }) => {
      const address = formatAddress(family, octets)
      const text = family === 4 ? `${address}:${port}` : `[${address}]:${port}`
      return mode === 'explicit' ? text : `${text} (${mode})`
    })
  }

  /** The mode of each listener, by the channel of its UDP listener. Valid after `start`. */
  get modes(): readonly ListenerMode[] {
    return this.#bound.map(({ mode }) => mode)
  }

  /**
   * Binds all sockets, and reads none of them before `reading(true)`. If one fails, it closes all and throws UnavailableError, which names
   * the remedy.
   */
  start(): void {
    try {
      for (const config of this.#options.configs) this.#startOne(config)
      this.reading(false)
    } catch (error) {
      this.stop()
      throw error
    }
  }

  /** Turns reading on or off. While it is off, packets and new connections wait in the kernel. Open TCP connections continue. */
  reading(on: boolean): void {
    for (const listener of this.udp) listener.reading(on)
    this.tcp.accepting(on)
  }

  /** Returns all listeners and connections for the successor, with sockets that `duplicate` copies. This process closes its own. */
  handOut(duplicate: (descriptor: number) => number): HandedSockets {
    this.#collector.flush()
    const streams = this.tcp.descriptors
    const listeners = this.#bound.map((bound, i) => {
      const [udp, tcp] = [this.udp[i]?.descriptor, streams[i]]
      invariant(udp !== undefined && tcp !== undefined, 'a listener has a UDP and a TCP socket')
      return { ...bound, udp: duplicate(udp), tcp: duplicate(tcp) }
    })
    const connections = this.tcp.handOut(duplicate)
    this.stop()
    return { listeners, connections }
  }

  stop(): void {
    for (const listener of this.udp) listener.stop()
    this.tcp.stop()
    this.#bound = []
  }

  /** Starts one listener. If the port that the kernel chose for UDP is in use for TCP or IPv6, it tries another port, none twice. */
  #startOne(config: ListenerConfig): void {
    const before = this.udp.length
    const inVain: UdpListener[] = []
    try {
      for (let draws = 1; ; draws++) {
        try {
          return this.#bindEach(config)
        } catch (error) {
          if (!this.#isDrawn(config) || draws === DRAWS_MAX) throw error
          inVain.push(...this.udp.splice(before))
          this.tcp.closeListeners(before)
          this.#bound.splice(before)
        }
      }
    } finally {
      for (const listener of inVain) listener.stop()
    }
  }

  /** Returns true if the kernel chooses the port. A given socket already has a port. */
  #isDrawn({ address, port }: ListenerConfig): boolean {
    return (
      port === 0 &&
      this.#givenFor(address?.family ?? 4, address?.octets ?? EVERY_ADDRESS, 0) === undefined
    )
  }

  #bindEach({ address, port, mode }: ListenerConfig): void {
    if (address !== undefined) {
      this.#bind(address.family, address.octets, port, mode)
      return
    }
    const first = this.#bind(4, this.#wholeOf(4, port, mode), port, mode)
    if (this.#options.hasIpv6) this.#bind(6, this.#wholeOf(6, first, mode), first, mode)
  }

  /** The address of a listener without one. Given sockets can be bound to every address. */
  #wholeOf(family: Family, port: number, mode: ListenerMode): Uint8Array {
    const isGiven = this.#givenFor(family, EVERY_ADDRESS, port) !== undefined
    return isGiven ? EVERY_ADDRESS : defaultAddress(family, mode)
  }

  /** Binds UDP and TCP on one address. If `port` is 0, the kernel chooses a port for UDP, and TCP uses the same port. */
  #bind(family: Family, octets: Uint8Array, port: number, mode: ListenerMode): number {
    const channel = this.udp.length
    const given = this.#givenFor(family, octets, port)
    const where = { family, octets, mode }
    const { datagrams } = this.#options
    const listener = datagrams.listen({ ...where, channel, port, descriptor: given?.udp })
    this.udp.push(listener)
    this.tcp.listen({ ...where, port: listener.port, descriptor: given?.tcp })
    this.#bound.push({ family, octets, port: listener.port, mode })
    return listener.port
  }

  #givenFor(family: Family, octets: Uint8Array, port: number): GivenSockets | undefined {
    return this.#options.given?.find((each) => isFor(each, family, octets, port))
  }
}

/** Returns true if a listener on `octets` receives packets to the address at `at`. Zeros mean every address. */
function isAt(octets: Uint8Array, address: Uint8Array, at: number): boolean {
  let isAny = true
  let isSame = true
  for (let i = 0; i < 16; i++) {
    if (octets[i] !== 0) isAny = false
    if (octets[i] !== address[at + i]) isSame = false
  }
  return isAny || isSame
}

function isFor(given: GivenSockets, family: Family, octets: Uint8Array, port: number): boolean {
  if (given.family !== family || !hasPort(given, port)) return false
  return given.octets?.every((octet, i) => octet === octets[i]) ?? true
}

/** Returns true if the given socket can serve port `wanted`. If `wanted` is 0, a socket with an address can serve it. */
function hasPort({ port, octets }: GivenSockets, wanted: number): boolean {
  return port === undefined || port === wanted || (wanted === 0 && octets !== undefined)
}
