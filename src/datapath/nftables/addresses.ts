// Whole addresses, each in a scope: what is wanted of `exact4` and `exact6`, and what the kernel has of it. In typed arrays, 45
// octets a row; pages that were never touched cost nothing. Written by prefixes.ts only.

import { HashIndex } from '../../core/hash-index.ts'
import type { Family } from '../../core/ip.ts'
import { hashOctets } from '../../core/keyed-hash.ts'
import { Slots } from '../../core/slots.ts'
import type { Message } from './message.ts'
import { DELETE_ELEMENT, NEW_ELEMENT, type Elements } from './sets.ts'

const NAME: Readonly<Record<Family, string>> = { 4: 'exact4', 6: 'exact6' }
const WIDTH: Readonly<Record<Family, number>> = { 4: 4, 6: 16 }
const DATA = 16

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
  #count = 0
  #sampled = 0

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
    this.#index = new HashIndex(capacity, this)
  }

  /** Addresses that are wanted. */
  get count(): number {
    return this.#count
  }

  get hasChanges(): boolean {
    return this.#changed.length > 0
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
    if (this.#isChanged[row] === 0) {
      this.#isChanged[row] = 1
      this.#changed.push(row)
    }
    return true
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

  /** Writes what changed and takes it for written. */
  encodeChanges(to: Message, elements: Elements): void {
    for (const row of this.#changed) if (this.#isStale(row)) this.#remove(row, to, elements)
    for (const row of this.#changed) {
      this.#isChanged[row] = 0
      if (this.identities[row] !== this.#appliedIdentities[row]) this.#write(row, to, elements)
      if (this.identities[row] === 0) this.#free(row)
    }
    elements.flush()
    this.#changed = []
  }

  /** Writes everything; `onElement` after each. */
  encodeAll(to: Message, elements: Elements, onElement: () => void): void {
    for (const row of this.#changed) {
      this.#isChanged[row] = 0
      if (this.identities[row] === 0) this.#free(row)
    }
    this.#changed = []
    for (let row = 1; row <= this.slots.high; row++) {
      if (this.identities[row] === 0) continue
      this.#write(row, to, elements)
      onElement()
    }
    elements.flush()
  }

  /** Whether `isThere` says so of some rows of those that the kernel has, one after the other from where the last call ended. */
  sample(count: number, isThere: (name: string, key: Uint8Array) => boolean): boolean {
    const { high } = this.slots
    for (let i = Math.min(count, high); i > 0; i--) {
      this.#sampled = (this.#sampled % high) + 1
      const row = this.#sampled
      if (this.#appliedIdentities[row] === 0) continue
      const family = this.#family(row)
      const key = new Uint8Array(4 + WIDTH[family])
      key.set(new Uint8Array(Uint32Array.of(this.#scopes[row]!).buffer))
      key.set(this.#octets.subarray(row * 16, row * 16 + WIDTH[family]), 4)
      if (!isThere(NAME[family], key)) return false
    }
    return true
  }

  hashOfRow(row: number): number {
    return hashOf(this.#scopes[row]!, this.#family(row), this.#octets, row * 16)
  }

  #isStale(row: number): boolean {
    const applied = this.#appliedIdentities[row]!
    if (applied === 0) return false
    if (applied === this.identities[row] && this.#appliedClasses[row] === this.classes[row]) {
      return false
    }
    return true
  }

  #remove(row: number, to: Message, elements: Elements): void {
    this.#key(row, DELETE_ELEMENT, to, elements)
    elements.end()
    this.#appliedIdentities[row] = this.#appliedClasses[row] = 0
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
    const family = this.#family(row)
    const width = WIDTH[family]
    const at = elements.begin(action, NAME[family], 4 + width)
    to.putWord(at, this.#scopes[row]!)
    to.put(at + 4, this.#octets, row * 16, width)
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
    this.#index.remove(row)
    this.slots.free(row)
  }

  #family(row: number): Family {
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
