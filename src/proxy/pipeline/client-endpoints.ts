// Whose query it is. The source address names the endpoint, and where the socket says the interface that must be the
// endpoint's own, too (arrivals.ts); where it does not, the kernel's reverse path and the datapath's source check
// vouch for the address. Workloads in cgroups share the host's addresses: there the datapath remembers which of
// them sent from that port.

import { HOST } from '../../identity/reserved.ts'
import type { Datapath } from '../../datapath/datapath.ts'
import { TCP, UDP } from '../../core/protocol.ts'
import type { Endpoint, EndpointRegistry } from '../../endpoints/registry.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'
import type { Arrivals } from './arrivals.ts'
import type { Listeners } from '../server/listeners.ts'
import { OF_OURS, OVER_TCP, type ClientColumns } from '../messages/client-columns.ts'

export interface ClientEndpointsOptions {
  readonly registry: EndpointRegistry
  readonly datapath: Pick<Datapath, 'peers'>
  readonly ipcache: IpCache
  /** Where queries may come in; undefined where no socket says it. */
  readonly arrivals?: Arrivals | undefined
  /** What clients may have asked itself instead of a server; absent: nothing is intercepted. */
  readonly listeners?: Pick<Listeners, 'isDirect'>
  /** Whether the whole node is audited now. */
  readonly isNodeAudited: () => boolean
}

export class ClientEndpoints {
  readonly #options: ClientEndpointsOptions

  constructor(options: ClientEndpointsOptions) {
    this.#options = options
  }

  /** The endpoint whose address the client of a row has; undefined when no endpoint has it. */
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

  /** Whether a transparent listener itself was asked. */
  asksListener(clients: ClientColumns, row: number): boolean {
    return this.#options.listeners?.isDirect(clients, row) === true
  }

  /** Whether the query came in where its endpoint's packets do. */
  arrivesRightly(endpoint: Endpoint, clients: ClientColumns, row: number): boolean {
    const { arrivals } = this.#options
    if (arrivals === undefined || !arrivals.isJudged(clients, row)) return true
    return arrivals.mayArrive(endpoint, clients.interfaces[row]!)
  }

  /** Whether what policy denies the endpoint passes and is only reported. */
  isAudited(endpoint: Endpoint): boolean {
    return endpoint.audit || this.#options.isNodeAudited()
  }

  /** Loopback and the node's own addresses. */
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
