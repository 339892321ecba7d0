// AddressTable holds whole addresses, each in a scope: the wanted elements of `exact4` and `exact6`, and the elements that the kernel
// has. It uses typed arrays, 45 octets for each row. Pages that were never touched cost nothing. Only prefixes.ts writes it.

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
/** Elements that another process changed are written again in slices, so that no commit waits for all of them. */
const SLICE = 1024

export class AddressTable {
  readonly slots: Slots
  readonly #index: HashIndex
  readonly #octets: Uint8Array
  readonly #families: Uint8Array
  readonly #scopes: Uint32Array
  /** The wanted values. Identity 0 means no element. */
  readonly identities: Uint32Array
  readonly classes: Uint32Array
  /** The values that the kernel has. */
  readonly #appliedIdentities: Uint32Array
  readonly #appliedClasses: Uint32Array
  readonly #isChanged: Uint8Array
  #changed: number[] = []
  /** Rows of the last write. */
  #written: readonly number[] = []
  /** Rows for which the kernel may have something else than was written. */
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

  /** How many addresses are wanted. */
  get count(): number {
    return this.#count
  }

  get hasChanges(): boolean {
    return this.#changed.length > 0 || this.hasSuspects
  }

  /** True if more elements must be written again. */
  get hasSuspects(): boolean {
    return this.#suspects.length > 0 || this.#strays.length > 0
  }

  /** Returns the row of an address, or 0 if there is none. */
  find(scope: number, family: Family, octets: Uint8Array, offset: number): number {
    const hash = hashOf(scope, family, octets, offset)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const row = this.#index.row(at)
      if (row === 0 || this.#equals(row, scope, family, octets, offset)) return row
    }
  }

  /** Adds a row for an address that has none. Returns 0 if the table is full. */
  add(scope: number, family: Family, octets: Uint8Array): number {
    const row = this.slots.take()
    if (row === 0) return 0
    const width = WIDTH[family]
    for (let i = 0; i < 16; i++) this.#octets[row * 16 + i] = i < width ? octets[i]! : 0
    this.#families[row] = family
    this.#scopes[row] = scope
    this.identities[row] = this.classes[row] = 0
    this.#appliedIdentities[row] = this.#appliedClasses[row] = 0
    this.#index.insert(this.hashOfRow(row), row)
    return row
  }

  /** Sets what a row should have. Identity 0 means no element. */
  set(row: number, identity: number, addressClass: number): void {
    if ((this.identities[row] === 0) !== (identity === 0)) this.#count += identity === 0 ? -1 : 1
    this.identities[row] = identity
    this.classes[row] = identity === 0 ? 0 : addressClass
    if (this.#comparison !== undefined) this.#comparison.isFresh[row] = 1
    if (this.#isChanged[row] === 0) {
      this.#isChanged[row] = 1
      this.#changed.push(row)
    }
  }

  /** Notes what another process left in the kernel (undefined: no element). Returns false if it is the wanted element. */
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

  /** The wanted data of a key. */
  dataOf(family: Family, key: Uint8Array): Uint8Array | undefined {
    const row = this.find(wordAt(key, 0), family, key, 4)
    return this.identities[row] === 0 ? undefined : data(this.identities[row]!, this.classes[row]!)
  }

  /** Call this when the kernel has lost every element. */
  suspectAll(): void {
    for (let row = 1; row <= this.slots.high; row++) {
      if (this.identities[row] !== 0) this.#suspectRow(row)
    }
  }

  /** Call this when the kernel already has everything. */
  adopt(): void {
    for (const row of this.#changed) {
      this.#isChanged[row] = 0
      this.#appliedIdentities[row] = this.identities[row]!
      this.#appliedClasses[row] = this.classes[row]!
    }
    this.#changed = []
  }

  /** Encodes the changed rows and a slice of the suspect rows, and treats them as written. */
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

  /** Encodes everything. Calls `onElement` after each element. */
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

  /**
   * Begins a comparison of everything in the kernel. It records rows that are written during the comparison. `isWriting`: the last
   * batch is still being written, so its rows are recorded too.
   */
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

  /** The key of the row's element. */
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
