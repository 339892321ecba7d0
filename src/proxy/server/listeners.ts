// The listeners: for each configured address a UDP and a TCP socket on the same port, all filling one batch.
// Starts all or none.

import type { Clock } from '../../core/clock.ts'
import { formatAddress, type Family } from '../../core/ip.ts'
import type { Limits } from '../../core/limits.ts'
import { invariant } from '../../core/invariant.ts'
import type { ListenerEntry } from '../../datapath/entries.ts'
import type { ListenerConfig, ListenerMode } from '../../config/config.ts'
import { DNS_PORT } from '../../policy/compile/dns-rules.ts'
import type { MessageBatch } from '../messages/batch.ts'
import type { ClientColumns } from '../messages/client-columns.ts'
import { BatchCollector } from '../messages/collector.ts'
import type { Datagrams, UdpListener } from '../sockets/datagrams.ts'
import type { HandedSockets } from '../handed.ts'
import type { Streams } from '../sockets/streams.ts'
import { TcpServer } from './tcp-server.ts'

export interface ListenersOptions {
  readonly clock: Clock
  readonly limits: Limits
  readonly configs: readonly ListenerConfig[]
  /** Whether this host speaks IPv6; without it a listener on every address takes IPv4 alone. */
  readonly hasIpv6: boolean
  /** What carries UDP, and what TCP. */
  readonly datagrams: Datagrams
  readonly streams: Streams
  readonly onBatch: (batch: MessageBatch) => void
  /** Sockets that are bound already, taken where a listener of theirs is configured. */
  readonly given?: readonly GivenSockets[] | undefined
}

/** UDP and TCP sockets bound to the port of one listener, perhaps in another network namespace. */
export interface GivenSockets {
  readonly family: Family
  /** Which listener takes them; absent: whichever is the first of the family. */
  readonly octets?: Uint8Array
  readonly port?: number
  /** Descriptors; they are ours from now on. Undefined: the listener binds it. */
  readonly udp: number | undefined
  readonly tcp: number | undefined
}

export interface BoundListener {
  readonly family: Family
  readonly octets: Uint8Array
  readonly port: number
  readonly mode: ListenerMode
}

/** Every address of a family. */
const EVERY = new Uint8Array(16)
/** Ports tried for a listener of a free one. Half of all taken for TCP: 1 start in 65,536 fails. */
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
   * What the datapath lets through without a rule; after `start`. Port 53 of a transparent one is left to interception: as
   * long as that is not in force, another resolver may have it on some address of the node.
   */
  get entries(): readonly ListenerEntry[] {
    return this.#bound.filter(({ mode, port }) => mode !== 'tproxy' || port !== DNS_PORT)
  }

  /** All of them; after `start`. */
  get bound(): readonly BoundListener[] {
    return this.#bound
  }

  /** Whether what is sent to an address, the node's own or not, arrives at a listener without interception. */
  receives(octets: Uint8Array, port: number, isNode: boolean): boolean {
    return this.entries.some((entry) => {
      if (entry.port !== port) return false
      return entry.octets.every((octet) => octet === 0)
        ? isNode
        : entry.octets.every((octet, i) => octet === octets[i])
    })
  }

  /** Whether a query was sent to a transparent listener itself: interception brings those to port 53 alone. */
  isDirect(clients: ClientColumns, row: number): boolean {
    const asked = clients.askedPorts[row]!
    if (asked === DNS_PORT) return false
    for (const { mode, port, family, octets } of this.#bound) {
      if (mode !== 'tproxy' || port !== asked || family !== clients.families[row]) continue
      if (isAt(octets, clients.askedAddresses, row * 16)) return true
    }
    return false
  }

  /** `127.0.0.1:5300`, `[::]:53`, `0.0.0.0:10053 (tproxy)`; after `start`. */
  get texts(): readonly string[] {
    return this.#bound.map(({ family, octets, port, mode }) => {
      const address = formatAddress(family, octets)
      const text = family === 4 ? `${address}:${port}` : `[${address}]:${port}`
      return mode === 'explicit' ? text : `${text} (${mode})`
    })
  }

  /** By the channel of the UDP listener; after `start`. */
  get modes(): readonly ListenerMode[] {
    return this.#bound.map(({ mode }) => mode)
  }

  /** Binds everything; throws UnavailableError with the remedy, and then nothing stays bound. */
  async start(): Promise<void> {
    try {
      for (const config of this.#options.configs) await this.#startOne(config)
    } catch (error) {
      this.stop()
      throw error
    }
  }

  /** Off: what comes waits in the kernel, as long as it has room; TCP connections that are open go on. */
  reading(on: boolean): void {
    for (const listener of this.udp) listener.reading(on)
    this.tcp.accepting(on)
  }

  /** Everything as it stands, for the successor, in sockets that `duplicate` copies; nothing is left here. */
  handOut(duplicate: (descriptor: number) => number): HandedSockets {
    this.#collector.flush()
    const streams = this.tcp.descriptors
    const listeners = this.#bound.map((bound, i) => {
      const [udp, tcp] = [this.udp[i]?.descriptor, streams[i]]
      invariant(udp !== undefined && tcp !== undefined, 'native sockets can be handed out')
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

  /** A port that is free for UDP may be taken for TCP or IPv6: then another one is drawn, and none twice. */
  async #startOne(config: ListenerConfig): Promise<void> {
    const before = this.udp.length
    const inVain: UdpListener[] = []
    try {
      for (let draws = 1; ; draws++) {
        try {
          return await this.#bindEach(config)
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

  /** Whether the kernel chooses the port; a socket that is given has one. */
  #isDrawn({ address, port }: ListenerConfig): boolean {
    return (
      port === 0 && this.#givenFor(address?.family ?? 4, address?.octets ?? EVERY, 0) === undefined
    )
  }

  async #bindEach({ address, port, mode }: ListenerConfig): Promise<void> {
    if (address !== undefined) {
      await this.#bind(address.family, address.octets, port, mode)
      return
    }
    const first = await this.#bind(4, EVERY, port, mode)
    if (this.#options.hasIpv6) await this.#bind(6, EVERY, first, mode)
  }

  /** One address, both transports; a free port (0) is drawn by UDP and then taken by TCP too. */
  async #bind(
    family: Family,
    octets: Uint8Array,
    port: number,
    mode: ListenerMode,
  ): Promise<number> {
    const channel = this.udp.length
    const given = this.#givenFor(family, octets, port)
    const where = { family, octets, mode }
    const { datagrams } = this.#options
    const listener = datagrams.listen({ ...where, channel, port, descriptor: given?.udp })
    this.udp.push(listener)
    // What waits in sockets that were bound before is read when it can be answered.
    if (given?.udp !== undefined && given.octets !== undefined) listener.reading(false)
    const isTcpGiven = given?.tcp !== undefined && given.octets !== undefined
    await this.tcp.listen({ ...where, port: listener.port, descriptor: given?.tcp }, !isTcpGiven)
    this.#bound.push({ family, octets, port: listener.port, mode })
    return listener.port
  }

  #givenFor(family: Family, octets: Uint8Array, port: number): GivenSockets | undefined {
    return this.#options.given?.find((each) => isFor(each, family, octets, port))
  }
}

/** Whether a listener takes what is sent to an address: its own, or any. */
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

/** Which port a listener of a free one has is said by its socket. */
function hasPort({ port, octets }: GivenSockets, wanted: number): boolean {
  return port === undefined || port === wanted || (wanted === 0 && octets !== undefined)
}
