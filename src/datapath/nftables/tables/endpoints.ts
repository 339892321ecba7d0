// EndpointElements writes one attached endpoint into the kernel's sets: its interface, its flags, and its sources as ranges that
// do not overlap. It also writes an entry from which all of this can be read back. Only hooks.ts uses it.

import { type EndpointId, endpointId } from '../../../core/ids.ts'
import { containsPrefix, type Family, type Prefix } from '../../../core/ip.ts'
import type { EndpointEntry } from '../../entries.ts'
import { AUDIT, ENFORCING, SCOPED, SIDE_OUT } from './dump.ts'
import { data, pack, wordAt, words } from '../netlink/keys.ts'
import { shapeOf, type Side } from '../rules/layout.ts'
import type { Element, Mirror } from './mirror.ts'

const FLAGS = ['audited', 'unenforced', 'scoped'] as const
const FAMILIES = [4, 6] as const

export class EndpointElements {
  readonly #mirror: Mirror
  /** By index, the side of each interface that has an endpoint. */
  readonly #sides = new Map<number, Side>()
  /** Elements of `sources4` and `sources6`, by endpoint. */
  readonly #sources = { 4: new Map<EndpointId, Element[]>(), 6: new Map<EndpointId, Element[]>() }

  /** Restores the sources that the mirror has. */
  constructor(mirror: Mirror) {
    this.#mirror = mirror
    for (const family of FAMILIES) {
      for (const element of mirror.list(`sources${family}`)) {
        const id = endpointId(wordAt(element.key, 0))
        const list = this.#sources[family].get(id) ?? []
        list.push(element)
        this.#sources[family].set(id, list)
      }
    }
  }

  /** Records the side at which the mirror has a hook. */
  restoreHook(index: number, side: Side): void {
    this.#sides.set(index, side)
  }

  put(entry: EndpointEntry, index: number, side: Side): void {
    const { id, enforcing, audit, scoped = false } = entry
    if (this.#sides.get(index) !== side) this.clearHook(index)
    this.#sides.set(index, side)
    this.#mirror.put(`hooks_${side}`, { key: pack(['ifindex'], [index]), data: data(id) })
    const flags =
      (enforcing ? ENFORCING : 0) |
      (audit ? AUDIT : 0) |
      (scoped ? SCOPED : 0) |
      (side === 'out' ? SIDE_OUT : 0)
    const key = pack(['mark'], [id])
    this.#mirror.put('endpoints', { key, data: words(entry.generation, flags, index, 0) })
    this.#flag('audited', id, audit)
    this.#flag('unenforced', id, !enforcing)
    this.#flag('scoped', id, scoped)
    this.#putSources(id, entry.sources)
  }

  /** Call this when the interface has no endpoint any more. */
  clearHook(index: number): void {
    const side = this.#sides.get(index)
    if (side === undefined) return
    this.#sides.delete(index)
    this.#mirror.remove(`hooks_${side}`, { key: pack(['ifindex'], [index]) })
  }

  /** Removes everything of an endpoint except its interface. */
  clear(id: EndpointId): void {
    this.#mirror.remove('endpoints', { key: pack(['mark'], [id]) })
    for (const name of FLAGS) this.#flag(name, id, false)
    this.#putSources(id, [])
  }

  #flag(name: (typeof FLAGS)[number], id: EndpointId, isSet: boolean): void {
    const element = { key: pack(['mark'], [id]) }
    if (isSet) this.#mirror.put(name, element)
    else this.#mirror.remove(name, element)
  }

  #putSources(id: EndpointId, sources: readonly Prefix[]): void {
    for (const family of FAMILIES) {
      const name = `sources${family}`
      const wanted: Element[] = [...sourceRanges(id, family, sources)]
      const kept = new Set(wanted.map(textOf))
      for (const element of this.#sources[family].get(id) ?? []) {
        if (!kept.has(textOf(element))) this.#mirror.remove(name, element)
      }
      for (const element of wanted) this.#mirror.put(name, element)
      if (wanted.length === 0) this.#sources[family].delete(id)
      else this.#sources[family].set(id, wanted)
    }
  }
}

function textOf({ key, keyEnd = key }: Element): string {
  return Buffer.concat([key, keyEnd]).toString('hex')
}

export interface SourceRange {
  readonly key: Uint8Array
  readonly keyEnd: Uint8Array
}

/** The ranges of the sources. A prefix inside another prefix of the list is left out. */
export function sourceRanges(
  id: EndpointId,
  family: Family,
  sources: readonly Prefix[],
): readonly SourceRange[] {
  const own = sources.filter((prefix) => prefix.family === family)
  const outer = own.filter((prefix, i) => !own.some((other, j) => isInside(prefix, i, other, j)))
  const fields = shapeOf(`sources${family}`).key
  return outer.map((prefix) => ({
    key: pack(fields, [id, prefix.octets]),
    keyEnd: pack(fields, [id, lastOf(prefix)]),
  }))
}

function isInside(prefix: Prefix, i: number, other: Prefix, j: number): boolean {
  if (i === j || !containsPrefix(other, prefix)) return false
  return other.length < prefix.length || j < i
}

export function lastOf({ family, octets, length }: Prefix): Uint8Array {
  const last = octets.slice()
  const width = family === 4 ? 32 : 128
  for (let bit = length; bit < width; bit++) last[bit >> 3]! |= 0x80 >> (bit & 7)
  return last
}
