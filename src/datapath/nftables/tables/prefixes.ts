// Prefix -> identity and class, by scope. Whole addresses stand in exact maps, where learning one costs one element; wider
// prefixes, which only configuration makes, in maps of ranges. Ranges may not overlap, so nested prefixes are cut: each range
// has the longest prefix around it. The prefixes themselves stand in `prefixes4` and `prefixes6`, to be read back.
//
// A change of a wider prefix cuts all of its family anew: n log n.

import { widthOf, type Family } from '../../../core/ip.ts'
import type { PrefixBatch } from '../../prefix-batch.ts'
import { AddressTable } from './addresses.ts'
import { data, pack, words } from '../netlink/keys.ts'
import { shapeOf } from '../rules/layout.ts'
import type { Mirror } from './mirror.ts'

/** One wider prefix; addresses as numbers. */
export interface Wide {
  readonly scope: number
  readonly first: bigint
  readonly last: bigint
  readonly length: number
  readonly identity: number
  readonly addressClass: number
}

const FAMILIES: readonly Family[] = [4, 6]

export class PrefixTable {
  readonly addresses: AddressTable
  readonly #mirror: Mirror
  readonly #capacity: number
  readonly #wide = { 4: new Map<string, Wide>(), 6: new Map<string, Wide>() }
  readonly #isCut = { 4: true, 6: true }
  /** What stood where the last `set` was: identity (0: nothing) and class. */
  beforeIdentity = 0
  beforeClass = 0

  constructor(mirror: Mirror, capacity: number) {
    this.#mirror = mirror
    this.#capacity = capacity
    this.addresses = new AddressTable(capacity)
  }

  /** Makes entry `i` of a batch be so, or not be (identity 0); false when it is new and there is no room. */
  set(batch: PrefixBatch, i: number, identity: number, addressClass: number): boolean {
    const [family, scope] = [batch.family(i), batch.scope(i)]
    if (batch.length(i) < widthOf(family)) return this.#setWide(batch, i, identity, addressClass)
    const octets = batch.octets(i)
    const row = this.addresses.find(scope, family, octets, 0)
    this.beforeIdentity = this.addresses.identities[row]!
    this.beforeClass = this.addresses.classes[row]!
    if (this.beforeIdentity === identity && this.beforeClass === addressClass) return true
    if (identity !== 0 && this.beforeIdentity === 0 && this.#isFull()) return false
    return this.addresses.set(scope, family, octets, 0, identity, addressClass)
  }

  /** Tells the mirror what the changes since the last call come to. */
  settle(): void {
    for (const family of FAMILIES) {
      if (this.#isCut[family]) continue
      this.#isCut[family] = true
      const key = shapeOf(`ranges${family}`).key
      const elements = cut([...this.#wide[family].values()]).map((range) => ({
        key: pack(key, [range.scope, octetsOf(range.first, family)]),
        keyEnd: pack(key, [range.scope, octetsOf(range.last, family)]),
        data: data(range.identity, range.addressClass),
      }))
      this.#mirror.replace(`ranges${family}`, elements)
    }
  }

  /** Identity and class of an address as an endpoint sees it; 0 for what no prefix names. */
  longest(scope: number, family: Family, octets: Uint8Array): readonly [number, number] {
    const row = this.addresses.find(scope, family, octets, 0)
    if (this.addresses.identities[row] !== 0) {
      return [this.addresses.identities[row]!, this.addresses.classes[row]!]
    }
    const address = numberOf(octets, family)
    let best: Wide | undefined
    for (const wide of this.#wide[family].values()) {
      if (wide.scope !== scope || address < wide.first || address > wide.last) continue
      if (best === undefined || wide.length > best.length) best = wide
    }
    return best === undefined ? [0, 0] : [best.identity, best.addressClass]
  }

  #setWide(batch: PrefixBatch, i: number, identity: number, addressClass: number): boolean {
    const [family, scope, length] = [batch.family(i), batch.scope(i), batch.length(i)]
    const octets = batch.octets(i)
    const wide = this.#wide[family]
    const first = numberOf(octets, family)
    const text = `${scope} ${length} ${first}`
    const before = wide.get(text)
    this.beforeIdentity = before?.identity ?? 0
    this.beforeClass = before?.addressClass ?? 0
    if (this.beforeIdentity === identity && this.beforeClass === addressClass) return true
    if (before === undefined && this.#isFull()) return false
    const name = `prefixes${family}`
    const key = pack(shapeOf(name).key, [scope, length, octets])
    this.#isCut[family] = false
    if (identity === 0) {
      wide.delete(text)
      this.#mirror.remove(name, { key })
      return true
    }
    const last = first + 2n ** BigInt(widthOf(family) - length) - 1n
    wide.set(text, { scope, first, last, length, identity, addressClass })
    this.#mirror.put(name, { key, data: words(identity, addressClass) })
    return true
  }

  #isFull(): boolean {
    const count = this.addresses.count + this.#wide[4].size + this.#wide[6].size
    return count >= this.#capacity
  }
}

/** Ranges that do not overlap, each as the longest prefix around it says, in order. */
export function cut(prefixes: readonly Wide[]): readonly Wide[] {
  const sorted = prefixes.toSorted(
    (a, b) => a.scope - b.scope || compare(a.first, b.first) || a.length - b.length,
  )
  const ranges: Wide[] = []
  const around: Wide[] = []
  let at = 0n
  const close = (): void => {
    const top = around.pop()
    if (top === undefined) return
    if (at <= top.last) ranges.push({ ...top, first: at })
    at = top.last + 1n
  }
  for (const prefix of sorted) {
    for (let top = around.at(-1); top !== undefined; top = around.at(-1)) {
      if (top.scope === prefix.scope && top.last >= prefix.first) break
      close()
    }
    const top = around.at(-1)
    if (top !== undefined && at < prefix.first) {
      ranges.push({ ...top, first: at, last: prefix.first - 1n })
    }
    at = prefix.first
    around.push(prefix)
  }
  while (around.length > 0) close()
  return ranges
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function numberOf(octets: Uint8Array, family: Family): bigint {
  const width = family === 4 ? 4 : 16
  return BigInt(`0x${Buffer.from(octets.subarray(0, width)).toString('hex')}`)
}

function octetsOf(address: bigint, family: Family): Uint8Array {
  const digits = family === 4 ? 8 : 32
  return Buffer.from(address.toString(16).padStart(digits, '0'), 'hex')
}
