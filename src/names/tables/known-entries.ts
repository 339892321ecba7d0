// Finds an entry that is known by going from the name along its lists, which nearly every answer needs. It touches a third
// of the memory that looking up address, mapping and entry in their tables does. It looks at a few rows only and says
// 0 for what stands further back: whoever asks then goes by the tables.

import type { EndpointId } from '../../core/ids.ts'
import { widthOf, type Family } from '../../core/ip.ts'
import type { PrefixTable } from '../../ipcache/prefix-table.ts'
import type { MappingTable } from './mapping-table.ts'
import type { NameTable } from './name-table.ts'
import type { EntryTable } from './entry-table.ts'

export interface KnownEntriesOptions {
  readonly names: NameTable
  readonly mappings: MappingTable
  readonly entries: EntryTable
  readonly prefixes: PrefixTable
}

/** A name as `learn` and `renew` want it: wire octets in lower case from 0, their number and `hashOctets` of them. */
export interface HashedName {
  readonly wire: Uint8Array
  readonly length: number
  readonly hash: number
}

/** Addresses of a name, and endpoints of an address, that are looked at. */
const LOOKS_MAX = 8

export class KnownEntries {
  readonly #in: KnownEntriesOptions

  constructor(options: KnownEntriesOptions) {
    this.#in = options
  }

  /** The entry of a name's row, an endpoint and an address of 4 or 16 octets at `offset`; 0 when it is not among the first. */
  find(
    name: number,
    endpoint: EndpointId,
    family: Family,
    octets: Uint8Array,
    offset: number,
  ): number {
    const mapping = this.#mappingOf(name, family, octets, offset)
    return mapping === 0 ? 0 : this.#entryOf(mapping, endpoint)
  }

  /** The entry by the tables, however far back it stands in the lists; 0 when it is not known. */
  lookUp(
    endpoint: EndpointId,
    { wire, length, hash }: HashedName,
    family: Family,
    octets: Uint8Array,
    offset: number,
  ): number {
    const { names, mappings, entries, prefixes } = this.#in
    const name = names.find(wire, 0, length, hash)
    if (name === 0) return 0
    const prefix = prefixes.find(family, octets, offset, widthOf(family))
    const mapping = prefix === 0 ? 0 : mappings.find(name, prefix)
    return mapping === 0 ? 0 : entries.find(mapping, endpoint)
  }

  #mappingOf(name: number, family: Family, octets: Uint8Array, offset: number): number {
    const { names, mappings } = this.#in
    const { prefix, nextOfName } = mappings
    let row = names.firstMapping[name]!
    for (let i = 0; i < LOOKS_MAX && row !== 0; i++, row = nextOfName[row]!) {
      if (this.#isAddress(prefix[row]!, family, octets, offset)) return row
    }
    return 0
  }

  /** Whether the row of a host is that address; the width tells the family. */
  #isAddress(row: number, family: Family, octets: Uint8Array, offset: number): boolean {
    const { prefixes } = this.#in
    const width = widthOf(family)
    if (prefixes.lengths[row] !== width) return false
    const at = row * 16
    for (let i = 0; i < width >> 3; i++)
      if (prefixes.octets[at + i] !== octets[offset + i]) return false
    return true
  }

  #entryOf(mapping: number, endpoint: EndpointId): number {
    const { entries, mappings } = this.#in
    let row = mappings.firstEntry[mapping]!
    for (let i = 0; i < LOOKS_MAX && row !== 0; i++, row = entries.nextOfMapping[row]!) {
      if (entries.endpoint[row] === endpoint) return row
    }
    return 0
  }
}
