// Who began a connection, and whether it is open: the model of src/datapath/ebpf/programs/conn.h, which has the rules and their
// reasons. One table has established TCP and evicts nothing. The other table has everything else and evicts the least recently used
// connection.

import type { Clock } from '../../../../src/core/clock.ts'
import {
  endpointId,
  generation,
  type EndpointId,
  type Generation,
} from '../../../../src/core/ids.ts'
import { formatAddress } from '../../../../src/core/ip.ts'
import { TCP } from '../../../../src/core/protocol.ts'
import type { PeerScan } from '../../../../src/datapath/abilities.ts'
import { ConnectionScan, type Connection, type State } from './connection-scan.ts'
import { isEcho, isFollowed, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN, type Packet } from './packet.ts'

/** The endpoint of a connection, in its current generation. */
export interface Owner {
  readonly id: EndpointId
  readonly generation: Generation
}

/** Owner of tuples that belong to any endpoint. */
const ANY_OWNER: Owner = { id: endpointId(0), generation: generation(0) }
const REPLY_IDLE_MS = 180_000
const CLOSING_MS = 60_000
const NEIGHBOUR_MS = 3_600_000
const PROMOTE_AGAIN_MS = 1000
const SETTLED_MAX = 262_144
const UNSETTLED_MAX = 131_072

export interface ConnectionsOptions {
  readonly clock: Clock
  readonly perEndpoint: number
  readonly tcpIdleMs: number
  readonly udpIdleMs: number
  /** Called when a connection is established, but its endpoint has too many. */
  readonly onLimit: () => void
}

export class Connections {
  readonly #options: ConnectionsOptions
  readonly #settled = new Map<string, Connection>()
  readonly #unsettled = new Map<string, Connection>()
  readonly #neighbours = new Map<string, number>()
  readonly #open = new Map<EndpointId, number>()

  constructor(options: ConnectionsOptions) {
    this.#options = options
  }

  /** Whether a packet from the endpoint is a reply in a connection that the peer began. */
  isReply(owner: Owner, packet: Packet): boolean {
    if (isOpening(packet)) return false
    if (!isFollowed(packet) && (packet.laterFragment || !isEcho(packet, 'reply'))) return false
    const key = keyOf(owner, packet, true)
    const settled = this.#settled.get(key)
    if (settled !== undefined) return settled.began === 'peer'
    const unsettled = this.#unsettled.get(key)
    if (unsettled?.began !== 'peer') return false
    const ending = unsettled.state === 'closing' || unsettled.state === 'reset'
    return this.#options.clock.now() - unsettled.seen < (ending ? CLOSING_MS : REPLY_IDLE_MS)
  }

  /** Whether the connection of a packet from the endpoint was seen from its begin. */
  has(owner: Owner, packet: Packet): boolean {
    const key = keyOf(owner, packet, true)
    return this.#settled.has(key) || this.#unsettled.has(key)
  }

  /** Records a packet that passed (outbound) or arrived. */
  follow(owner: Owner, packet: Packet, outbound: boolean): void {
    if (packet.laterFragment) return
    const echo = !outbound && isEcho(packet, 'request')
    if (!isFollowed(packet) && !echo) return
    const key = keyOf(owner, packet, outbound)
    if (packet.protocol === TCP) {
      this.#followTcp(owner, packet, key, outbound)
      return
    }
    const known = this.#unsettled.get(key)
    const tuple = keyOf(ANY_OWNER, packet, outbound)
    if (known !== undefined) {
      this.#touch(key, known)
      if (known.began === 'endpoint') this.#begin(ANY_OWNER, packet, tuple, true)
    } else if (outbound) {
      this.#begin(owner, packet, key, true)
      this.#begin(ANY_OWNER, packet, tuple, true)
    } else if (!this.#isInUse(tuple)) this.#begin(owner, packet, key, false)
  }

  /** Whether some endpoint began the tuple and it is still in use, if only by its peer. */
  #isInUse(tuple: string): boolean {
    const known = this.#unsettled.get(tuple)
    if (known === undefined || this.#options.clock.now() - known.seen >= REPLY_IDLE_MS) return false
    this.#touch(tuple, known)
    return true
  }

  learnNeighbour(owner: Owner, address: Uint8Array): void {
    const key = `${owner.id} ${owner.generation} ${formatAddress(6, address)}`
    this.#neighbours.delete(key)
    this.#neighbours.set(key, this.#options.clock.now())
    evict(this.#neighbours, UNSETTLED_MAX)
  }

  isNeighbour(owner: Owner, address: Uint8Array): boolean {
    const seen = this.#neighbours.get(
      `${owner.id} ${owner.generation} ${formatAddress(6, address)}`,
    )
    return seen !== undefined && this.#options.clock.now() - seen < NEIGHBOUR_MS
  }

  /** Visits open peers. Removes connections that are idle or belong to an older generation. */
  scan(generationOf: (id: EndpointId) => number): PeerScan {
    return new ConnectionScan({
      ...this.#options,
      settled: this.#settled,
      unsettled: this.#unsettled,
      generationOf,
      onOver: (key, connection) => this.#unsettle(key, connection),
    })
  }

  clear(): void {
    this.#settled.clear()
    this.#unsettled.clear()
    this.#neighbours.clear()
    this.#open.clear()
  }

  #followTcp(owner: Owner, packet: Packet, key: string, outbound: boolean): void {
    const settled = this.#settled.get(key)
    if (settled !== undefined) {
      this.#followSettled(owner, packet, key, outbound, settled)
      return
    }
    const known = this.#unsettled.get(key)
    if (!isOpening(packet)) {
      if (known !== undefined) this.#followUnsettled(packet, key, outbound, known)
    } else if (known === undefined) {
      this.#begin(owner, packet, key, outbound)
    } else if (outbound || known.began === 'peer') {
      this.#begin(owner, packet, key, outbound)
    }
  }

  #followSettled(
    owner: Owner,
    packet: Packet,
    key: string,
    outbound: boolean,
    connection: Connection,
  ): void {
    if (isOpening(packet)) {
      if (!outbound || connection.began === 'endpoint') return
      this.#unsettle(key, connection)
      this.#begin(owner, packet, key, outbound)
      return
    }
    connection.seen = this.#options.clock.now()
    if (packet.tcpFlags & TCP_RST) this.#demote(key, connection, 'reset')
    else this.#noteFin(packet, key, outbound, connection)
  }

  #followUnsettled(packet: Packet, key: string, outbound: boolean, known: Connection): void {
    const { tcpFlags } = packet
    const initiator = outbound === (known.began === 'endpoint')
    if (known.state === 'closing') return
    if (known.state === 'reset') {
      if (tcpFlags & (TCP_RST | TCP_SYN)) return
      if (outbound) known.afterLocal = true
      else known.afterPeer = true
      if (known.afterLocal && known.afterPeer) this.#promote(key, known)
      return
    }
    if (known.state === 'answered' && initiator && isPlainAck(tcpFlags)) {
      this.#promote(key, known)
      this.#noteFin(packet, key, outbound, known)
      return
    }
    const isPlain = (tcpFlags & (TCP_SYN | TCP_RST | TCP_FIN)) === 0
    const waited = this.#options.clock.now() - known.seen > PROMOTE_AGAIN_MS
    if (known.state === 'open' && isPlain && waited && this.#promote(key, known)) return
    const both = TCP_SYN | TCP_ACK
    if (known.state === 'new' && !initiator && (tcpFlags & both) === both) known.state = 'answered'
    this.#touch(key, known)
    if (tcpFlags & TCP_RST) known.state = 'closing'
    else this.#noteFin(packet, key, outbound, known)
  }

  #noteFin(packet: Packet, key: string, outbound: boolean, connection: Connection): void {
    if (!(packet.tcpFlags & TCP_FIN)) return
    if (outbound) connection.finLocal = true
    else connection.finPeer = true
    if (!connection.finLocal || !connection.finPeer) return
    if (this.#settled.has(key)) this.#demote(key, connection, 'closing')
    else connection.state = 'closing'
  }

  #begin(owner: Owner, packet: Packet, key: string, outbound: boolean): void {
    this.#put(key, {
      protocol: packet.protocol,
      endpoint: owner.id,
      generation: owner.generation,
      family: packet.family,
      peer: outbound ? packet.target : packet.source,
      began: outbound ? 'endpoint' : 'peer',
      state: 'new',
      seen: this.#options.clock.now(),
      finLocal: false,
      finPeer: false,
      afterLocal: false,
      afterPeer: false,
    })
  }

  #promote(key: string, connection: Connection): boolean {
    const open = this.#open.get(connection.endpoint) ?? 0
    if (open >= this.#options.perEndpoint || this.#settled.size >= SETTLED_MAX) {
      this.#options.onLimit()
      connection.state = 'open'
      return false
    }
    this.#open.set(connection.endpoint, open + 1)
    this.#unsettled.delete(key)
    const now = this.#options.clock.now()
    Object.assign(connection, { state: 'open', seen: now, finLocal: false, finPeer: false })
    this.#settled.set(key, connection)
    return true
  }

  #demote(key: string, connection: Connection, state: State): void {
    this.#unsettle(key, connection)
    const seen = this.#options.clock.now()
    Object.assign(connection, { state, seen, afterLocal: false, afterPeer: false })
    this.#put(key, connection)
  }

  #unsettle(key: string, { endpoint }: Connection): void {
    if (!this.#settled.delete(key)) return
    this.#open.set(endpoint, (this.#open.get(endpoint) ?? 1) - 1)
  }

  #touch(key: string, connection: Connection): void {
    connection.seen = this.#options.clock.now()
    this.#put(key, connection)
  }

  #put(key: string, connection: Connection): void {
    this.#unsettled.delete(key)
    this.#unsettled.set(key, connection)
    evict(this.#unsettled, UNSETTLED_MAX)
  }
}

function evict(map: Map<string, unknown>, max: number): void {
  if (map.size <= max) return
  for (const key of map.keys()) {
    map.delete(key)
    return
  }
}

function keyOf(owner: Owner, packet: Packet, outbound: boolean): string {
  const source = `${formatAddress(packet.family, packet.source)} ${packet.sourcePort}`
  const target = `${formatAddress(packet.family, packet.target)} ${packet.targetPort}`
  const tuple = outbound ? `${source} ${target}` : `${target} ${source}`
  return `${owner.id} ${owner.generation} ${packet.protocol} ${tuple}`
}

function isPlainAck(flags: number): boolean {
  return (flags & TCP_ACK) !== 0 && (flags & (TCP_SYN | TCP_RST)) === 0
}

export function isOpening({ protocol, tcpFlags }: Packet): boolean {
  const mask = TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN
  return protocol === TCP && (tcpFlags & mask) === TCP_SYN
}
