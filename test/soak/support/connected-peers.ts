// A datapath whose endpoints have the open connections that a soak says, besides those that packets made.

import type { EndpointId } from '../../../src/core/ids.ts'
import type { Datapath, PeerScan } from '../../../src/datapath/datapath.ts'

export class ConnectedPeers {
  readonly datapath: Datapath
  #open: { readonly endpoint: EndpointId; readonly octets: Uint8Array }[] = []

  constructor(datapath: Datapath) {
    const scanOf = datapath.scanPeers.bind(datapath)
    datapath.scanPeers = () => this.#scan(scanOf())
    this.datapath = datapath
  }

  /** An IPv4 peer. */
  open(endpoint: EndpointId, octets: Uint8Array): void {
    this.#open.push({ endpoint, octets: octets.slice() })
  }

  closeAll(): void {
    this.#open = []
  }

  #scan(rest: PeerScan): PeerScan {
    const open = [...this.#open]
    return {
      next: (limit, visit) => {
        for (const { endpoint, octets } of open.splice(0, limit)) visit(endpoint, 4, octets)
        return open.length === 0 && rest.next(limit, visit)
      },
    }
  }
}
