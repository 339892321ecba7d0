// ServerIdentity looks up a DNS server as policy sees it. The server has the identity and the class of the longest known prefix around its
// address. Without such a prefix, it has the identity and the class of the world. One object is filled again by each `look`. A `look`
// costs one probe for each prefix length in use and allocates nothing.

import { identity, type Identity } from '../core/ids.ts'
import { isLoopback, type Family } from '../core/ip.ts'
import { UDP, type DnsProtocol } from '../core/protocol.ts'
import { HOST, WORLD_IPV4, worldOf } from '../identity/reserved.ts'
import type { IpCache } from '../ipcache/ipcache.ts'
import type { DnsServer } from './dns-verdicts.ts'

export class ServerIdentity implements DnsServer {
  identity: Identity = WORLD_IPV4
  /** HOST, ENDPOINT_CLASS, RESOURCE_CLASS, WORLD_IPV4 or WORLD_IPV6. */
  addressClass: Identity = WORLD_IPV4
  /** The port of the question. The caller of `look` sets it, and `protocol`. */
  port = 0
  protocol: DnsProtocol = UDP
  /** True for an address of the node itself, loopback included. */
  isNode = false
  readonly #ipcache: IpCache

  constructor(ipcache: IpCache) {
    this.#ipcache = ipcache
  }

  /** Looks up the address whose 16 octets begin at `offset`. */
  look(family: Family, octets: Uint8Array, offset: number): void {
    const { prefixes } = this.#ipcache
    const row = prefixes.findAround(family, octets, offset)
    const world = worldOf(family)
    this.identity = row === 0 ? world : identity(prefixes.wanted[row]!)
    const known = row === 0 ? 0 : prefixes.addressClass[row]!
    this.addressClass = known === 0 ? world : identity(known)
    this.isNode = known === HOST || isLoopback(family, octets, offset)
  }
}
