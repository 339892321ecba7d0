// Whole addresses, each in a scope: what is wanted of `exact4` and `exact6`, and what the kernel has of it. In typed arrays, 45
// octets a row; pages that were never touched cost nothing. Written by prefixes.ts only.

import { HashIndex } from '../../../core/tables/hash-index.ts'
import type { Family } from '../../../core/ip.ts'
import { hashOctets } from '../../../core/tables/keyed-hash.ts'
import { Slots } from '../../../core/tables/slots.ts'
import type { Message } from '../netlink/message.ts'
import { AddressComparison } from '../repair/address-comparison.ts'
import { data, wordAt } from '../netlink/keys.ts'
import { DELETE_ELEMENT, DESTROY_ELEMENT, NEW_ELEMENT, type Elements } from '../netlink/sets.ts'

const NAME: Readonly<Record<Family, string>> = { 4: 'exact4', 6: 'exact6' }
const WIDTH: Readonly<Record<Family, number>> = { 4: 4, 6: 16 }
const DATA = 16
/** What somebody else changed is written anew in slices, so that no commit waits for all of it. */
const SLICE = 1024

export class AddressTable {
  readonly slots: Slots
  readonly #index: HashIndex
  readonly #octets: Uint8Array
  readonly #families: Uint8Array
  readonly #scopes: Uint32Array
  /** Wanted; identity 0: nothing. */
  readonly identities: Uint32Array
  readonly classes: Uint32Array
  /** In the kernel. */
  readonly #appliedIdentities: Uint32Array
  readonly #appliedClasses: Uint32Array
  readonly #isChanged: Uint8Array
  #changed: number[] = []
  /** Rows that were written last. */
  #written: readonly number[] = []
  /** Rows of which the kernel may have something else than we wrote. */
  #suspects: number[] = []
  readonly #isSuspect: Uint8Array
  /** Keys that the kernel has and that have no row. */
  #strays: { readonly family: Family; readonly key: Uint8Array }[] = []
  #comparison: AddressComparison | undefined
  #count = 0

  constructor(capacity: number) {
    const rows = capacity + 1
    this.slots = new Slots(capacity)
    this.#octets = new Uint8Array(rows * 16)
    this.#families = new Uint8Array(rows)
    this.#scopes = new Uint32Array(rows)
    this.identities = new Uint32Array(rows)
    this.classes = new Uint32Array(rows)
    this.#appliedIdentities = new Uint32Array(rows)
    this.#appliedClasses = new Uint32Array(rows)
    this.#isChanged = new Uint8Array(rows)
    this.#isSuspect = new Uint8Array(rows)
    this.#index = new HashIndex(capacity, this)
  }

  /** Addresses that are wanted. */
  get count(): number {
    return this.#count
  }

  get hasChanges(): boolean {
    return this.#changed.length > 0 || this.hasSuspects
  }

  /** Whether there is more to be written anew. */
  get hasSuspects(): boolean {
    return this.#suspects.length > 0 || this.#strays.length > 0
  }

  /** The row of an address, 0 when there is none. */
  find(scope: number, family: Family, octets: Uint8Array, offset: number): number {
    const hash = hashOf(scope, family, octets, offset)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const row = this.#index.row(at)
      if (row === 0 || this.#equals(row, scope, family, octets, offset)) return row
    }
  }

  /** Wants the address so (identity 0: not at all); false when there is no row for it. */
  set(
    scope: number,
    family: Family,
    octets: Uint8Array,
    offset: number,
    identity: number,
    addressClass: number,
  ): boolean {
    let row = this.find(scope, family, octets, offset)
    if (row === 0) {
      if (identity === 0) return true
      row = this.#add(scope, family, octets, offset)
      if (row === 0) return false
    }
    if ((this.identities[row] === 0) !== (identity === 0)) this.#count += identity === 0 ? -1 : 1
    this.identities[row] = identity
    this.classes[row] = identity === 0 ? 0 : addressClass
    if (this.#comparison !== undefined) this.#comparison.isFresh[row] = 1
    if (this.#isChanged[row] === 0) {
      this.#isChanged[row] = 1
      this.#changed.push(row)
    }
    return true
  }

  /** The kernel has this (undefined: nothing) by what somebody else did; false when it is as it should be. */
  suspect(family: Family, key: Uint8Array, held: Uint8Array | undefined): boolean {
    const row = this.find(wordAt(key, 0), family, key, 4)
    const isWanted = this.identities[row] !== 0
    const isRight =
      held === undefined
        ? !isWanted
        : this.identities[row] === wordAt(held, 4) && this.classes[row] === wordAt(held, 12)
    if (row === 0 && !isRight) this.#strays.push({ family, key: key.slice() })
    if (row !== 0 && !(isRight && isWanted)) this.#suspectRow(row)
    return !isRight
  }

  /** What the kernel is to have there. */
  dataOf(family: Family, key: Uint8Array): Uint8Array | undefined {
    const row = this.find(wordAt(key, 0), family, key, 4)
    return this.identities[row] === 0 ? undefined : data(this.identities[row]!, this.classes[row]!)
  }

  /** The kernel has nothing of it. */
  suspectAll(): void {
    for (let row = 1; row <= this.slots.high; row++) {
      if (this.identities[row] !== 0) this.#suspectRow(row)
    }
  }

  /** The kernel has all of it already. */
  adopt(): void {
    for (const row of this.#changed) {
      this.#isChanged[row] = 0
      this.#appliedIdentities[row] = this.identities[row]!
      this.#appliedClasses[row] = this.classes[row]!
    }
    this.#changed = []
  }

  /** Writes what changed, and a part of what is to be written anew, and takes it for written. */
  encodeChanges(to: Message, elements: Elements): void {
    for (const { family, key } of this.#strays.splice(-SLICE)) {
      const row = this.find(wordAt(key, 0), family, key, 4)
      if (row !== 0) this.#suspectRow(row)
      else this.#destroy(family, key, to, elements)
    }
    const suspects = this.#suspects.splice(-SLICE)
    const all = suspects.length === 0 ? this.#changed : [...this.#changed, ...suspects]
    for (const row of all) {
      if (this.#isSuspect[row] === 1) this.#remove(row, DESTROY_ELEMENT, to, elements)
      else if (this.#isStale(row)) this.#remove(row, DELETE_ELEMENT, to, elements)
    }
    for (const row of all) {
      if (this.identities[row] !== this.#appliedIdentities[row]) this.#write(row, to, elements)
    }
    for (const row of this.#changed) {
      this.#isChanged[row] = 0
      if (this.identities[row] === 0) this.#free(row)
    }
    elements.flush()
    this.#written = all
    this.#changed = []
  }

  /** Writes everything; `onElement` after each. */
  encodeAll(to: Message, elements: Elements, onElement: () => void): void {
    for (const row of this.#changed) {
      this.#isChanged[row] = 0
      if (this.identities[row] === 0) this.#free(row)
    }
    this.#changed = []
    this.#suspects = []
    this.#strays = []
    this.#isSuspect.fill(0)
    for (let row = 1; row <= this.slots.high; row++) {
      if (this.identities[row] === 0) continue
      this.#write(row, to, elements)
      onElement()
    }
    elements.flush()
  }

  /** Begins a comparison of everything that the kernel has; it notes rows that are written meanwhile. `isWriting`: also those of the
   *  last batch. */
  beginComparison(isWriting: boolean): AddressComparison {
    this.#comparison = new AddressComparison(this, this.#isChanged)
    if (isWriting) for (const row of this.#written) this.#comparison.isFresh[row] = 1
    return this.#comparison
  }

  endComparison(): void {
    const gone = new Set(this.#comparison?.gone)
    this.#comparison = undefined
    for (const row of gone)
      if (this.identities[row] === 0 && this.#isChanged[row] === 0) this.#free(row)
  }

  /** The key of its element. */
  keyOf(row: number): Uint8Array {
    const width = WIDTH[this.familyOf(row)]
    const key = new Uint8Array(4 + width)
    key.set(new Uint8Array(Uint32Array.of(this.#scopes[row]!).buffer))
    key.set(this.#octets.subarray(row * 16, row * 16 + width), 4)
    return key
  }

  #write(row: number, to: Message, elements: Elements): void {
    if (this.identities[row] === 0) return
    this.#key(row, NEW_ELEMENT, to, elements)
    const at = elements.data(DATA)
    to.putWord(at + 4, this.identities[row]!)
    to.putWord(at + 12, this.classes[row]!)
    elements.end()
    this.#appliedIdentities[row] = this.identities[row]!
    this.#appliedClasses[row] = this.classes[row]!
  }

  #key(row: number, action: number, to: Message, elements: Elements): void {
    const family = this.familyOf(row)
    const width = WIDTH[family]
    const at = elements.begin(action, NAME[family], 4 + width)
    to.putWord(at, this.#scopes[row]!)
    to.put(at + 4, this.#octets, row * 16, width)
  }

  hashOfRow(row: number): number {
    return hashOf(this.#scopes[row]!, this.familyOf(row), this.#octets, row * 16)
  }

  #isStale(row: number): boolean {
    const applied = this.#appliedIdentities[row]!
    if (applied === 0) return false
    if (applied === this.identities[row] && this.#appliedClasses[row] === this.classes[row]) {
      return false
    }
    return true
  }

  #suspectRow(row: number): void {
    if (this.#isSuspect[row] === 1) return
    this.#isSuspect[row] = 1
    this.#suspects.push(row)
  }

  #remove(row: number, action: number, to: Message, elements: Elements): void {
    this.#key(row, action, to, elements)
    elements.end()
    this.#isSuspect[row] = this.#appliedIdentities[row] = this.#appliedClasses[row] = 0
  }

  #destroy(family: Family, key: Uint8Array, to: Message, elements: Elements): void {
    to.put(elements.begin(DESTROY_ELEMENT, NAME[family], key.length), key, 0, key.length)
    elements.end()
  }

  #add(scope: number, family: Family, octets: Uint8Array, offset: number): number {
    const row = this.slots.take()
    if (row === 0) return 0
    const width = WIDTH[family]
    for (let i = 0; i < 16; i++) this.#octets[row * 16 + i] = i < width ? octets[offset + i]! : 0
    this.#families[row] = family
    this.#scopes[row] = scope
    this.identities[row] = this.classes[row] = 0
    this.#appliedIdentities[row] = this.#appliedClasses[row] = 0
    this.#index.insert(this.hashOfRow(row), row)
    return row
  }

  #free(row: number): void {
    if (this.#comparison !== undefined) {
      this.#comparison.gone.push(row)
      return
    }
    this.#isSuspect[row] = 0
    this.#index.remove(row)
    this.slots.free(row)
  }

  familyOf(row: number): Family {
    return this.#families[row] === 4 ? 4 : 6
  }

  #equals(row: number, scope: number, family: Family, octets: Uint8Array, offset: number): boolean {
    if (this.#scopes[row] !== scope || this.#families[row] !== family) return false
    const width = WIDTH[family]
    for (let i = 0; i < width; i++) {
      if (this.#octets[row * 16 + i] !== octets[offset + i]) return false
    }
    return true
  }
}

function hashOf(scope: number, family: Family, octets: Uint8Array, offset: number): number {
  const hash = hashOctets(octets, offset, WIDTH[family])
  return Math.imul(hash ^ Math.imul(scope, 0x85ebca6b), 0x9e3779b1) >>> 0
}
