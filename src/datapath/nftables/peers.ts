// Peers that endpoints have open connections to, from the kernel's connection table: established TCP that the endpoint began. The
// kernel closes what is idle by its own times; `tcp-idle` above them has no effect.

import type { EndpointId } from '../../core/ids.ts'
import { containsPrefix, widthOf, type Family, type Prefix } from '../../core/ip.ts'
import { TCP } from '../../core/protocol.ts'
import { openConntrack, type Conntrack, type Flow } from '../../native/conntrack.ts'
import type { ConntrackAddon } from '../../native/native.ts'
import type { PeerScan } from '../datapath.ts'

const ESTABLISHED = 3

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
        if (flow.protocol !== TCP || flow.tcpState !== ESTABLISHED) return
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

  /** Away with the connections of addresses that are somebody else's now. */
  forget(sources: readonly Prefix[]): void {
    const table = this.#table
    if (table === undefined || sources.length === 0) return
    table.forgetFlows((flow) =>
      [flow.original.source, flow.reply.source].some((octets) => {
        const address = { family: flow.family, octets, length: widthOf(flow.family) }
        return sources.some((source) => containsPrefix(source, address))
      }),
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
