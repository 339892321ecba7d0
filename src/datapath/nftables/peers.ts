// Peers that endpoints have open connections to, from the kernel's connection table: established TCP that the endpoint began. The
// kernel closes what is idle by its own times; `tcp-idle` above them has no effect.

import type { EndpointId } from '../../core/ids.ts'
import { containsPrefix, widthOf, type Family, type Prefix } from '../../core/ip.ts'
import { TCP } from '../../core/protocol.ts'
import { openConntrack, type Conntrack, type Flow } from '../../native/conntrack.ts'
import type { ConntrackAddon } from '../../native/native.ts'
import type { PeerScan } from '../datapath.ts'

/** TCP_CONNTRACK_*: established, and closed from one side only. */
const OPEN: readonly number[] = [3, 4, 5]

export class Peers {
  readonly #table: Conntrack | undefined

  constructor({ addon }: { readonly addon: ConntrackAddon; readonly idleMs: number }) {
    const opened = openConntrack(addon)
    this.#table = opened.kind === 'open' ? opened.table : undefined
  }

  /** The table is listed at once; what it says is told in slices. */
  scan(endpoints: Iterable<readonly [EndpointId, readonly Prefix[]]>): PeerScan {
    const found: { readonly id: EndpointId; readonly flow: Flow }[] = []
    const owners = [...endpoints]
    for (const family of [4, 6] as const) {
      this.#table?.dump(family, (flow) => {
        if (flow.protocol !== TCP || !OPEN.includes(flow.tcpState)) return
        const id = ownerOf(owners, family, flow.original.source)
        if (id !== undefined) found.push({ id, flow })
      })
    }
    let at = 0
    return {
      next: (limit, visit) => {
        const end = Math.min(found.length, at + limit)
        for (; at < end; at++) {
          const each = found[at]
          if (each !== undefined) visit(each.id, each.flow.family, each.flow.original.target)
        }
        return at >= found.length
      },
    }
  }

  /** The addresses are somebody else's now: away with what peers began with their predecessor, and with its TCP. What it
   *  began over UDP stays, so that a peer that goes on sending does not begin it anew: it is judged as the successor's own. */
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
  }
}

function ownerOf(
  owners: readonly (readonly [EndpointId, readonly Prefix[]])[],
  family: Family,
  octets: Uint8Array,
): EndpointId | undefined {
  const address = { family, octets, length: widthOf(family) }
  return owners.find(([, sources]) =>
    sources.some((source) => containsPrefix(source, address)),
  )?.[0]
}
