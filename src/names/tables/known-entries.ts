// KnownEntries finds the entry of a lesson; nearly every answer needs this. `find` walks along the lists of the name and looks at a few
// rows only. The walk touches a third of the memory that lookups of address, mapping and entry in their tables touch. `lookUp` uses the
// tables and finds every entry.

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

/** `find` looks at this many mappings of a name, and then at this many entries of a mapping. */
const LOOKS_MAX = 8

export class KnownEntries {
  readonly #options: KnownEntriesOptions

  constructor(options: KnownEntriesOptions) {
    this.#options = options
  }

  /** Returns the entry of a lesson, by the row of its name. Returns 0 when the entry is not among the first rows. */
  find(name: number, lesson: Lesson): number {
    const mapping = this.#mappingOf(name, lesson)
    return mapping === 0 ? 0 : this.#entryOf(mapping, lesson.endpoint)
  }

  /** Returns the entry of a lesson, by the row of its name. Returns 0 when there is none. */
  lookUp(name: number, { endpoint, family, octets, offset }: Lesson): number {
    const { mappings, entries, prefixes } = this.#options
    const prefix = prefixes.find(family, octets, offset, widthOf(family))
    const mapping = prefix === 0 ? 0 : mappings.find(name, prefix)
    return mapping === 0 ? 0 : entries.find(mapping, endpoint)
  }

  #mappingOf(name: number, lesson: Lesson): number {
    const { names, mappings } = this.#options
    const { prefix, nextOfName } = mappings
    let row = names.firstMapping[name]!
    for (let i = 0; i < LOOKS_MAX && row !== 0; i++, row = nextOfName[row]!) {
      if (this.#isAddress(prefix[row]!, lesson)) return row
    }
    return 0
  }

  /** Returns true if the IPCache row holds the lesson's address. The prefix length, 32 or 128, tells the family. */
  #isAddress(row: number, { family, octets, offset }: Lesson): boolean {
    const { prefixes } = this.#options
    const width = widthOf(family)
    if (prefixes.lengths[row] !== width) return false
    const at = row * 16
    for (let i = 0; i < width >> 3; i++)
      if (prefixes.octets[at + i] !== octets[offset + i]) return false
    return true
  }

  #entryOf(mapping: number, endpoint: number): number {
    const { entries, mappings } = this.#options
    let row = mappings.firstEntry[mapping]!
    for (let i = 0; i < LOOKS_MAX && row !== 0; i++, row = entries.nextOfMapping[row]!) {
      if (entries.endpoint[row] === endpoint) return row
    }
    return 0
  }
}
