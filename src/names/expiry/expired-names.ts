// ExpiredNames remembers the last entries that expired, so that a refusal can say that an address had a name. It has a fixed number of rows;
// a new row replaces the oldest. Adding a row allocates nothing.

import { sameOctets } from '../../dns/wire.ts'
import { NAME_OCTETS_MAX } from '../../core/name.ts'
import type { PrefixTable } from '../../ipcache/prefix-table.ts'
import type { NameCache } from '../name-cache.ts'

/** A row costs 279 octets. */
const ROWS = 1024
const ADDRESS_OCTETS = 16

export class ExpiredNames {
  readonly #families = new Uint8Array(ROWS)
  readonly #addresses = new Uint8Array(ROWS * ADDRESS_OCTETS)
  readonly #endpoints = new Float64Array(ROWS)
  readonly #names = new Uint8Array(ROWS * NAME_OCTETS_MAX)
  readonly #lengths = new Uint8Array(ROWS)
  /** How many rows were written since the start. */
  #count = 0

  /** Remembers an entry that is about to be removed. */
  add({ names, mappings, entries }: NameCache, prefixes: PrefixTable, entry: number): void {
    const mapping = entries.mapping[entry]!
    const [name, prefix] = [mappings.name[mapping]!, mappings.prefix[mapping]!]
    const row = this.#count++ % ROWS
    const from = prefix * ADDRESS_OCTETS
    this.#families[row] = prefixes.family(prefix)
    this.#addresses.set(prefixes.octets.subarray(from, from + ADDRESS_OCTETS), row * ADDRESS_OCTETS)
    this.#endpoints[row] = entries.endpoint[entry]!
    const [octets, at, length] = [names.octetsOf(name), names.offsetOf(name), names.lengthOf(name)]
    for (let i = 0; i < length; i++) this.#names[row * NAME_OCTETS_MAX + i] = octets[at + i]!
    this.#lengths[row] = length
  }

  /** Returns the last name of the address, in wire form, that expired for the endpoint. Undefined if none is remembered. */
  find(endpoint: number, family: number, octets: Uint8Array): Uint8Array | undefined {
    const size = family === 4 ? 4 : ADDRESS_OCTETS
    const end = Math.max(0, this.#count - ROWS)
    for (let number = this.#count - 1; number >= end; number--) {
      const row = number % ROWS
      if (this.#endpoints[row] !== endpoint || this.#families[row] !== family) continue
      if (!sameOctets(octets, 0, this.#addresses, row * ADDRESS_OCTETS, size)) continue
      const at = row * NAME_OCTETS_MAX
      return this.#names.slice(at, at + this.#lengths[row]!)
    }
    return undefined
  }
}
