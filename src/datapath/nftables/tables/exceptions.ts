// namegate's own listeners as elements; both protocols each.

import type { ListenerEntry } from '../../datapath.ts'
import { TCP, UDP } from '../../../core/protocol.ts'
import { pack } from '../netlink/keys.ts'
import { shapeOf } from '../rules/layout.ts'
import type { Element } from './mirror.ts'
import { NFPROTO } from '../rules/rule.ts'

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
