// Sources writes ng_source, the addresses from which endpoints may send.

import type { EndpointId } from '../../../core/ids.ts'
import { formatPrefix, type Prefix } from '../../../core/ip.ts'
import type { KernelMap } from './kernel-map.ts'
import { decodeSource, encodeNumber, encodeSource } from './layout.ts'

export class Sources {
  readonly #map: KernelMap

  constructor(map: KernelMap) {
    this.#map = map
  }

  /** Everything in the kernel, by endpoint. */
  read(): Map<EndpointId, Prefix[]> {
    const found = new Map<EndpointId, Prefix[]>()
    this.#map.forEach((keys, key) => {
      const [id, prefix] = decodeSource(keys, key)
      const known = found.get(id)
      if (known === undefined) found.set(id, [prefix])
      else known.push(prefix)
    })
    return found
  }

  /** Adds the prefixes of `wanted` that `held` lacks. Returns 0, or the errno of a refused prefix. */
  add(id: EndpointId, wanted: readonly Prefix[], held: readonly Prefix[]): number {
    const one = encodeNumber(1)
    let result = 0
    for (const prefix of without(wanted, held)) {
      result = this.#map.set(encodeSource(id, prefix), one) || result
    }
    return result
  }

  /** Removes the prefixes of `held` that `wanted` lacks. */
  remove(id: EndpointId, held: readonly Prefix[], wanted: readonly Prefix[]): void {
    for (const prefix of without(held, wanted)) this.#map.delete(encodeSource(id, prefix))
  }
}

function without(prefixes: readonly Prefix[], others: readonly Prefix[]): readonly Prefix[] {
  if (others.length === 0) return prefixes
  const known = new Set(others.map(formatPrefix))
  return prefixes.filter((prefix) => !known.has(formatPrefix(prefix)))
}
