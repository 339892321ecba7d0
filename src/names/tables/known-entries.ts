// Finds a known entry by going along the lists of its name, which nearly every answer needs. This touches a third of the memory
// that looking up address, mapping and entry in their tables does. `find` looks at a few rows only; `lookUp` uses the tables
// and finds every entry.

import { widthOf } from '../../core/ip.ts'
import type { PrefixTable } from '../../ipcache/prefix-table.ts'
import type { Lesson } from '../lesson.ts'
import type { MappingTable } from './mapping-table.ts'
import type { NameTable } from './name-table.ts'
import type { EntryTable } from './entry-table.ts'

export interface KnownEntriesOptions {
  readonly names: NameTable
  readonly mappings: MappingTable
  readonly entries: EntryTable
  readonly prefixes: PrefixTable
}

/** The most addresses of a name, and endpoints of an address, that `find` looks at. */
const LOOKS_MAX = 8

export class KnownEntries {
  readonly #in: KnownEntriesOptions

  constructor(options: KnownEntriesOptions) {
    this.#in = options
  }

  /** The entry of a lesson under the row of its name; 0 when it is not among the first. */
  find(name: number, lesson: Lesson): number {
    const mapping = this.#mappingOf(name, lesson)
    return mapping === 0 ? 0 : this.#entryOf(mapping, lesson.endpoint)
  }

  /** The entry of a lesson under the row of its name; 0 when it is unknown. */
  lookUp(name: number, { endpoint, family, octets, offset }: Lesson): number {
    const { mappings, entries, prefixes } = this.#in
    const prefix = prefixes.find(family, octets, offset, widthOf(family))
    const mapping = prefix === 0 ? 0 : mappings.find(name, prefix)
    return mapping === 0 ? 0 : entries.find(mapping, endpoint)
  }

  #mappingOf(name: number, lesson: Lesson): number {
    const { names, mappings } = this.#in
    const { prefix, nextOfName } = mappings
    let row = names.firstMapping[name]!
    for (let i = 0; i < LOOKS_MAX && row !== 0; i++, row = nextOfName[row]!) {
      if (this.#isAddress(prefix[row]!, lesson)) return row
    }
    return 0
  }

  /** Whether the row of a host is the lesson's address. The width tells the family. */
  #isAddress(row: number, { family, octets, offset }: Lesson): boolean {
    const { prefixes } = this.#in
    const width = widthOf(family)
    if (prefixes.lengths[row] !== width) return false
    const at = row * 16
    for (let i = 0; i < width >> 3; i++)
      if (prefixes.octets[at + i] !== octets[offset + i]) return false
    return true
  }

  #entryOf(mapping: number, endpoint: number): number {
    const { entries, mappings } = this.#in
    let row = mappings.firstEntry[mapping]!
    for (let i = 0; i < LOOKS_MAX && row !== 0; i++, row = entries.nextOfMapping[row]!) {
      if (entries.endpoint[row] === endpoint) return row
    }
    return 0
  }
}
