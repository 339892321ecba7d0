// Peers finds the peers to which endpoints have open connections, from the kernel's connection table. It reports established TCP,
// UDP and SCTP that the endpoint began. The kernel closes idle connections after its own times (nf_conntrack_*_timeout; for UDP
// 30 s, or 120 s after a reply). So `tcp-idle` and `udp-idle` have no effect above those times.

import type { EndpointId } from '../../core/ids.ts'
import { containsPrefix, widthOf, type Family, type Prefix } from '../../core/ip.ts'
import { SCTP, TCP, UDP } from '../../core/protocol.ts'
import { FlowScan, openConntrack, type Conntrack } from '../../native/netfilter/conntrack.ts'
import type { ConntrackAddon } from '../../native/native.ts'
import type { PeerScan } from '../abilities.ts'

/** TCP_CONNTRACK_*: established, or closed from one side only. */
const OPEN: readonly number[] = [3, 4, 5]

function isOpen(protocol: number, tcpState: number): boolean {
  return protocol === TCP ? OPEN.includes(tcpState) : protocol === UDP || protocol === SCTP
}

export class Peers {
  readonly #table: Conntrack | undefined
  readonly #scan: FlowScan

  constructor(addon: ConntrackAddon) {
    const opened = openConntrack(addon)
    this.#table = opened.kind === 'open' ? opened.table : undefined
    this.#scan = new FlowScan(addon)
  }

  /** Starts a new pass, and ends an unfinished one. */
  scan(endpoints: Iterable<readonly [EndpointId, readonly Prefix[]]>): PeerScan {
    const owners = new Owners(endpoints)
    this.#scan.begin()
    return {
      next: (limit, visit) =>
        this.#scan.next(limit, isOpen, ({ family, original }) => {
          const id = owners.find(family, original.source)
          if (id !== undefined) visit(id, family, original.target)
        }),
    }
  }

  /**
   * Call this when the addresses get a new endpoint. Removes the connections that peers began with the earlier endpoint, and the
   * earlier endpoint's TCP connections. UDP connections that the earlier endpoint began stay. So a peer that continues to send
   * does not begin a connection, and policy judges what the new endpoint sends to that peer.
   */
  forget(sources: readonly Prefix[]): void {
    const table = this.#table
    if (table === undefined || sources.length === 0) return
    const isIn = (family: Family, octets: Uint8Array): boolean => {
      const address = { family, octets, length: widthOf(family) }
      return sources.some((source) => containsPrefix(source, address))
    }
    table.forgetFlows(
      ({ family, protocol, original, reply }) =>
        isIn(family, reply.source) || (protocol === TCP && isIn(family, original.source)),
    )
  }

  close(): void {
    this.#table?.close()
    this.#scan.close()
  }
}

/** Finds the endpoint of an address. Looks up single addresses in a table, and tries prefixes one after the other. */
class Owners {
  readonly #single = new Map<string, EndpointId>()
  readonly #wide: { readonly id: EndpointId; readonly prefix: Prefix }[] = []

  constructor(endpoints: Iterable<readonly [EndpointId, readonly Prefix[]]>) {
    for (const [id, prefixes] of endpoints) {
      for (const prefix of prefixes) {
        const { family, octets, length } = prefix
        if (length === widthOf(family)) this.#single.set(keyOf(family, octets), id)
        else this.#wide.push({ id, prefix })
      }
    }
  }

  find(family: Family, octets: Uint8Array): EndpointId | undefined {
    const single = this.#single.get(keyOf(family, octets))
    if (single !== undefined || this.#wide.length === 0) return single
    const address = { family, octets, length: widthOf(family) }
    return this.#wide.find(({ prefix }) => containsPrefix(prefix, address))?.id
  }
}

function keyOf(family: Family, octets: Uint8Array): string {
  return `${family} ${Buffer.from(octets.buffer, octets.byteOffset, 16).toString('latin1')}`
}
