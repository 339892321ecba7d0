// This file writes traffic that needs no rule as elements of sets: namegate's own listeners, its own traffic, and interfaces
// whose DNS the rules of interception redirect. An interface that is no longer intercepted stays quiet for a minute, so that
// answers on their way begin no connection.

import type { ListenerEntry } from '../../entries.ts'
import { TCP, UDP } from '../../../core/protocol.ts'
import { pack, wordAt } from '../netlink/keys.ts'
import { shapeOf } from '../rules/layout.ts'
import type { Element } from './mirror.ts'
import { NFPROTO } from '../rules/rule.ts'
import type { InterceptedInterface, OwnTraffic } from '../../abilities.ts'
import type { Table } from './table.ts'

export function listenerElements(
  listeners: readonly ListenerEntry[],
): readonly (readonly [name: string, elements: readonly Element[]])[] {
  const elements: Record<string, Element[]> = { listeners4: [], listeners6: [], listeners_any: [] }
  for (const { family, octets, port } of listeners) {
    const isAny = octets.every((octet) => octet === 0)
    const name = isAny ? 'listeners_any' : `listeners${family}`
    for (const protocol of [TCP, UDP]) {
      const values = isAny ? [NFPROTO[family], protocol, port] : [protocol, octets, port]
      elements[name]?.push({ key: pack(shapeOf(name).key, values) })
    }
  }
  return Object.entries(elements)
}

export function ownElements(
  own: readonly OwnTraffic[],
): readonly (readonly [name: string, elements: readonly Element[]])[] {
  return ([4, 6] as const).map((family) => {
    const name = `own${family}`
    const elements = own
      .filter((each) => each.family === family)
      .flatMap(({ mark, uid, octets, port }) =>
        [TCP, UDP].map((protocol) => ({
          key: pack(shapeOf(name).key, [mark, uid, protocol, octets, port]),
        })),
      )
    return [name, elements] as const
  })
}

const QUIET_MS = 60_000
const FAMILIES = [4, 6] as const
const MAC_AT = 12

export class Intercepted {
  readonly #table: Table

  constructor(table: Table) {
    this.#table = table
  }

  /** Writes into the mirror. The caller flushes. */
  set(interfaces: readonly InterceptedInterface[]): void {
    const { mirror } = this.#table
    const quiet = new Map<string, Element>()
    for (const element of this.#quietElements(this.list())) {
      quiet.set(Buffer.from(element.key).toString('hex'), { ...element, timeoutMs: QUIET_MS })
    }
    for (const element of this.#quietElements(interfaces)) {
      quiet.set(Buffer.from(element.key).toString('hex'), element)
    }
    mirror.replace(
      'intercepted',
      interfaces.filter((each) => each.bridgeMac === undefined).flatMap(elementsOf),
    )
    mirror.replace(
      'intercepted_mac',
      interfaces.filter((each) => each.bridgeMac !== undefined).flatMap(elementsOf),
    )
    // These elements may have expired, so they cannot be removed in the same transaction as others.
    for (const element of quiet.values()) {
      this.#table.applyTimed('delete', 'quiet', [element])
      this.#table.applyTimed('add', 'quiet', [element])
    }
  }

  list(): readonly InterceptedInterface[] {
    const { mirror } = this.#table
    const found = new Map<number, { 4: boolean; 6: boolean; bridgeMac?: Uint8Array }>()
    for (const name of ['intercepted', 'intercepted_mac']) {
      for (const { key } of mirror.list(name)) {
        const index = wordAt(key, 0)
        const entry = found.get(index) ?? { 4: false, 6: false }
        entry[key[4] === NFPROTO[4] ? 4 : 6] = true
        if (name === 'intercepted_mac') entry.bridgeMac = key.slice(MAC_AT, MAC_AT + 6)
        found.set(index, entry)
      }
    }
    return [...found]
      .map(([ifindex, { bridgeMac, ...families }]) => ({
        ifindex,
        families,
        ...(bridgeMac !== undefined && { bridgeMac }),
      }))
      .toSorted((a, b) => a.ifindex - b.ifindex)
  }

  #quietElements(interfaces: readonly InterceptedInterface[]): readonly Element[] {
    return interfaces.flatMap(({ ifindex, families }) =>
      FAMILIES.filter((family) => families[family]).map((family) => ({
        key: pack(shapeOf('quiet').key, [ifindex, NFPROTO[family]]),
      })),
    )
  }
}

function elementsOf({ ifindex, families, bridgeMac }: InterceptedInterface): readonly Element[] {
  const name = bridgeMac === undefined ? 'intercepted' : 'intercepted_mac'
  return FAMILIES.filter((family) => families[family]).flatMap((family) =>
    [TCP, UDP].map((protocol) => ({
      key: pack(shapeOf(name).key, [ifindex, NFPROTO[family], protocol, bridgeMac ?? 0]),
    })),
  )
}
