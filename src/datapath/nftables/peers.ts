// Peers to which endpoints have open connections, from the kernel's connection table: established TCP, UDP and SCTP that the endpoint began.
// The kernel closes idle connections by its own times (nf_conntrack_*_timeout; UDP 30 s, 120 s once answered): `tcp-idle` and `udp-idle`
// above those have no effect.

import type { EndpointId } from '../../core/ids.ts'
import { containsPrefix, widthOf, type Family, type Prefix } from '../../core/ip.ts'
import { SCTP, TCP, UDP } from '../../core/protocol.ts'
import { FlowScan, openConntrack, type Conntrack } from '../../native/netfilter/conntrack.ts'
import type { ConntrackAddon } from '../../native/native.ts'
import type { PeerScan } from '../abilities.ts'

/** TCP_CONNTRACK_*: established, and closed from one side only. */
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

  /** A new pass ends an unfinished one. */
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

  /** The addresses have a new endpoint: removes the flows that peers began with the endpoint before, and its TCP flows. UDP flows that the
   *  endpoint before began stay, so that a peer that goes on sending begins no flow: they are judged as the new endpoint's own. */
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

/** Finds the endpoint of an address: single addresses by a table, prefixes one after the other. */
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
