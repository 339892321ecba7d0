// The cgroup endpoint behind a query from an address that endpoints share with the host: the model of ng_dns_source. A full table
// evicts the oldest source.

import type { EndpointId } from '../../../../src/core/ids.ts'
import { formatAddress, type Family } from '../../../../src/core/ip.ts'
import type { Packet } from './packet.ts'

const SOURCES_MAX = 65_536

export class DnsSources {
  readonly #sources = new Map<string, EndpointId>()

  note(id: EndpointId, { protocol, family, source, sourcePort }: Packet): void {
    const key = keyOf(protocol, family, source, sourcePort)
    this.#sources.delete(key)
    this.#sources.set(key, id)
    if (this.#sources.size <= SOURCES_MAX) return
    for (const oldest of this.#sources.keys()) {
      this.#sources.delete(oldest)
      return
    }
  }

  find(protocol: number, family: Family, octets: Uint8Array, port: number): EndpointId | undefined {
    return this.#sources.get(keyOf(protocol, family, octets, port))
  }
}

function keyOf(protocol: number, family: Family, octets: Uint8Array, port: number): string {
  return `${protocol} ${formatAddress(family, octets)} ${port}`
}
