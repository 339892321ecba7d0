// Whose query it is. The source address decides, and in explicit mode the kernel's reverse path and the
// datapath's source check vouch for it. Workloads in cgroups share the host's addresses: there the datapath
// remembers which of them sent from that port.

import { HOST } from '../identity/reserved.ts'
import type { Datapath } from '../datapath/datapath.ts'
import { TCP, UDP } from '../core/protocol.ts'
import type { Endpoint, EndpointRegistry } from '../endpoints/registry.ts'
import type { IpCache } from '../ipcache/ipcache.ts'
import type { MessageBatch } from './batch.ts'
import { OVER_TCP } from './client-columns.ts'

export interface ClientEndpointsOptions {
  readonly registry: EndpointRegistry
  readonly datapath: Pick<Datapath, 'sourceOf'>
  readonly ipcache: IpCache
  /** Whether the whole node is audited now. */
  readonly isNodeAudited: () => boolean
}

export class ClientEndpoints {
  readonly #to: ClientEndpointsOptions

  constructor(options: ClientEndpointsOptions) {
    this.#to = options
  }

  /** The endpoint that sent entry `i`; undefined when nobody known did. */
  of(batch: MessageBatch, i: number): Endpoint | undefined {
    const family = batch.families[i] === 4 ? 4 : 6
    const { registry, datapath, ipcache } = this.#to
    const at = i * 16
    if (registry.sharedCount > 0 && this.#isShared(family, batch.addresses, at, ipcache)) {
      const protocol = batch.transports[i] === OVER_TCP ? TCP : UDP
      const source = batch.addresses.subarray(at, at + 16)
      const id = datapath.sourceOf(protocol, family, source, batch.ports[i]!)
      if (id !== undefined) return registry.get(id)
    }
    return registry.byAddress(family, batch.addresses, at)
  }

  /** Whether what policy denies the endpoint passes and is only reported. */
  isAudited(endpoint: Endpoint): boolean {
    return endpoint.audit || this.#to.isNodeAudited()
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
