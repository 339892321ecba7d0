// ClientEndpoints finds the endpoint that sent a query, by the source address. On a transparent listener, the
// interface must be the endpoint's own (Arrivals). Otherwise the kernel's reverse path filter and the datapath's source
// check guarantee the address. Workloads in cgroups share the host's addresses, so the datapath remembers which workload
// sent from which port.

import { HOST } from '../../identity/reserved.ts'
import type { Datapath } from '../../datapath/datapath.ts'
import type { Clock } from '../../core/clock.ts'
import type { EndpointId } from '../../core/ids.ts'
import { TCP, UDP } from '../../core/protocol.ts'
import type { Endpoint, EndpointRegistry } from '../../endpoints/registry.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'
import type { Listeners } from '../server/listeners.ts'
import { OF_OURS, OVER_TCP, type ClientColumns } from '../messages/client-columns.ts'

export interface ClientEndpointsOptions {
  readonly registry: EndpointRegistry
  readonly datapath: Pick<Datapath, 'peers'>
  readonly ipcache: IpCache
  /** Checks the interface of queries. Absent: it is not checked. */
  readonly arrivals?: Arrivals
  /** The listeners, to recognize queries that were sent to a listener instead of to a DNS server. Absent without interception. */
  readonly listeners?: Pick<Listeners, 'isDirect'>
  /** Returns true while audit is on for the whole node. */
  readonly isNodeAudited: () => boolean
}

export class ClientEndpoints {
  readonly #options: ClientEndpointsOptions

  constructor(options: ClientEndpointsOptions) {
    this.#options = options
  }

  /** Returns the endpoint of the client in a row, or undefined if no endpoint has the client's address. */
  of(clients: ClientColumns, row: number): Endpoint | undefined {
    const family = clients.families[row] === 4 ? 4 : 6
    const { registry, datapath, ipcache } = this.#options
    if (clients.transports[row] === OF_OURS) return registry.byNumber(clients.channels[row]!)
    const { addresses } = clients
    const at = row * 16
    if (registry.sharedCount > 0 && this.#isShared(family, addresses, at, ipcache)) {
      const protocol = clients.transports[row] === OVER_TCP ? TCP : UDP
      const source = addresses.subarray(at, at + 16)
      const id = datapath.peers.sourceOf(protocol, family, source, clients.ports[row]!)
      if (id !== undefined) return registry.get(id)
    }
    return registry.byAddress(family, addresses, at)
  }

  /** Returns true if the client sent the query to a transparent listener instead of to a DNS server. */
  asksListener(clients: ClientColumns, row: number): boolean {
    return this.#options.listeners?.isDirect(clients, row) === true
  }

  /** Returns true if packets of the endpoint can arrive on the interface of the query, or if the interface is not checked. */
  arrivesRightly(endpoint: Endpoint, clients: ClientColumns, row: number): boolean {
    const { arrivals } = this.#options
    if (arrivals === undefined || !arrivals.isJudged(clients, row)) return true
    return arrivals.mayArrive(endpoint, clients.interfaces[row]!)
  }

  /** Returns true if audit is on for the endpoint: queries that policy denies are forwarded and reported. */
  isAudited(endpoint: Endpoint): boolean {
    return endpoint.audit || this.#options.isNodeAudited()
  }

  /** Returns true for an address that cgroup workloads share: loopback or one of the node's own addresses. */
  #isShared(family: 4 | 6, octets: Uint8Array, at: number, ipcache: IpCache): boolean {
    if (family === 4 && octets[at] === 127) return true
    const row = ipcache.prefixes.find(family, octets, at, family === 4 ? 32 : 128)
    return row !== 0
      ? ipcache.prefixes.wanted[row] === HOST
      : family === 6 && isLoopback6(octets, at)
  }
}

function isLoopback6(octets: Uint8Array, at: number): boolean {
  for (let i = 0; i < 15; i++) if (octets[at + i] !== 0) return false
  return octets[at + 15] === 1
}

/** Finds interfaces of this network namespace by name or number. A negative result is an error. */
export interface Interfaces {
  ifIndex(name: string): number
  ifMaster(index: number): number
}

/** Loopback is the first interface of every network namespace (include/net/net_namespace.h). */
const LOOPBACK = 1
const EPOCH_MS = 100
const FRESH_EPOCHS = 10

/** The largest number of UDP listeners. They number their channels from 0. A daemon listens on a handful of addresses. */
const CHANNELS_MAX = 256

interface Place {
  index: number
  /** Interface number of the bridge that the interface is attached to; 0: none. */
  master: number
  epoch: number
}

/**
 * Arrivals checks on which interface a query arrived. An endpoint's queries arrive on the interface of its hook, or on the bridge
 * that this interface is attached to. Queries of a cgroup arrive on loopback, as the host's own packets do. The check is needed
 * because another workload could use the endpoint's source address [A24]. A query from another interface is not the endpoint's (P12).
 * Arrivals checks only queries on transparent listeners. In explicit mode an endpoint's address can be on another interface than
 * its hook. There the kernel's reverse path filter and the datapath's source check replace this check.
 *
 * An interface is looked up by name at most every FRESH_EPOCHS, after a mismatch at most once per epoch, and again after
 * `forget`. Every other query costs one lookup in a Map.
 */
export class Arrivals {
  readonly #interfaces: Interfaces
  readonly #places = new Map<EndpointId, Place>()
  readonly #clock: Clock
  /** 1 at the channel of each transparent UDP listener. */
  readonly #judged = new Uint8Array(CHANNELS_MAX)

  constructor(options: { readonly clock: Clock; readonly interfaces: Interfaces }) {
    this.#interfaces = options.interfaces
    this.#clock = options.clock
  }

  /** Lets Arrivals check queries of the UDP listener with this channel. */
  judge(channel: number): void {
    this.#judged[channel] = 1
  }

  /** Returns true if the interface of a row must be checked. A TCP connection has an interface only if it must be checked. */
  isJudged(clients: ClientColumns, row: number): boolean {
    return clients.transports[row] === OVER_TCP || this.#judged[clients.channels[row]!] === 1
  }

  /** Forgets all interfaces. Call it when endpoints, hooks or interfaces changed. */
  forget(): void {
    this.#places.clear()
  }

  /** Returns true if a query of the endpoint can arrive on interface `ifindex`, or if the interface is unknown (0). */
  mayArrive({ id, hook }: Endpoint, ifindex: number): boolean {
    if (ifindex === 0 || hook.kind === 'none') return true
    if (hook.kind === 'cgroup') return ifindex === LOOPBACK
    // This hook is inside the workload's own network namespace, where the workload's packets start on loopback.
    if (hook.side === 'egress' && ifindex === LOOPBACK) return true
    const place = this.#places.get(id)
    if (place === undefined) return isAt(this.#find(id, hook.name), ifindex)
    const age = this.#epoch() - place.epoch
    if (age < FRESH_EPOCHS && isAt(place, ifindex)) return true
    return age > 0 && isAt(this.#find(id, hook.name), ifindex)
  }

  #epoch(): number {
    return Math.floor(this.#clock.now() / EPOCH_MS)
  }

  #find(id: EndpointId, name: string): Place {
    const index = Math.max(this.#interfaces.ifIndex(name), 0)
    const master = index === 0 ? 0 : Math.max(this.#interfaces.ifMaster(index), 0)
    const place = { index, master, epoch: this.#epoch() }
    this.#places.set(id, place)
    return place
  }
}

function isAt({ index, master }: Place, ifindex: number): boolean {
  return ifindex === index || ifindex === master
}
