// PrefixTable maps prefixes to identity and class, by scope. Whole addresses are in exact maps, in which learning an address
// costs one element. Wider prefixes come only from configuration and are in maps of ranges. Ranges must not overlap, so nested
// prefixes are cut: each range has the value of the longest prefix around it. `prefixes4` and `prefixes6` hold the prefixes
// themselves, to be read back.
//
// A change of a wider prefix cuts all prefixes of its family again, which takes n log n.

import { widthOf, type Family } from '../../../core/ip.ts'
import type { PrefixBatch } from '../../prefix-batch.ts'
import { AddressTable } from './addresses.ts'
import { data, pack, words } from '../netlink/keys.ts'
import { shapeOf } from '../rules/layout.ts'
import type { Mirror } from './mirror.ts'

/** One wider prefix, with its first and last address as numbers. */
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
  /** The values before the last `set`: identity (0: no value) and class. */
  beforeIdentity = 0
  beforeClass = 0

  constructor(mirror: Mirror, capacity: number) {
    this.#mirror = mirror
    this.#capacity = capacity
    this.addresses = new AddressTable(capacity)
  }

  /** Sets entry `i` of a batch, or removes it (identity 0). Returns false if the entry is new and there is no room. */
  set(batch: PrefixBatch, i: number, identity: number, addressClass: number): boolean {
    const [family, scope] = [batch.family(i), batch.scope(i)]
    if (batch.length(i) < widthOf(family)) return this.#setWide(batch, i, identity, addressClass)
    const octets = batch.octets(i)
    let row = this.addresses.find(scope, family, octets, 0)
    this.beforeIdentity = this.addresses.identities[row]!
    this.beforeClass = this.addresses.classes[row]!
    if (this.beforeIdentity === identity && this.beforeClass === addressClass) return true
    if (identity !== 0 && this.beforeIdentity === 0 && this.#isFull()) return false
    if (row === 0) {
      if (identity === 0) return true
      row = this.addresses.add(scope, family, octets)
      if (row === 0) return false
    }
    this.addresses.set(row, identity, addressClass)
    return true
  }

  /** Writes the changes since the last call into the mirror. */
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

  /** Identity and class of an address as an endpoint sees it; 0 if no prefix contains it. */
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

/** Cuts prefixes into ordered ranges that do not overlap. Each range has the value of the longest prefix around it. */
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
