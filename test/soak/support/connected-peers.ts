// A datapath whose endpoints have the open connections that a soak sets, besides those that packets made.

import type { EndpointId } from '../../../src/core/ids.ts'
import type { PeerScan } from '../../../src/datapath/abilities.ts'
import type { Datapath } from '../../../src/datapath/datapath.ts'
import { DatapathWrapper } from '../../support/models/datapath-wrapper.ts'

export class ConnectedPeers {
  readonly datapath: Datapath
  #open: { readonly endpoint: EndpointId; readonly octets: Uint8Array }[] = []

  constructor(datapath: Datapath) {
    this.datapath = new WithPeers(datapath, (rest) => this.#scan(rest))
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

class WithPeers extends DatapathWrapper {
  readonly #scanWith: (rest: PeerScan) => PeerScan

  constructor(inner: Datapath, scanWith: (rest: PeerScan) => PeerScan) {
    super(inner)
    this.#scanWith = scanWith
  }

  override get peers(): Datapath['peers'] {
    const { peers } = this.inner
    return {
      scan: () => this.#scanWith(peers.scan()),
      use: () => peers.use(),
      sourceOf: (...query) => peers.sourceOf(...query),
    }
  }
}
