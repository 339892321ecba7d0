// This file finds the addresses that were learned by a name, and the names by which an address was learned.

import type { EndpointId } from '../core/ids.ts'
import { nameLength } from '../core/name.ts'
import { hashOctets } from '../core/tables/keyed-hash.ts'
import type { Prefix } from '../core/ip.ts'
import type { EntryTable } from '../names/tables/entry-table.ts'
import type { CoreState } from '../enforcement/core-state.ts'

/** Returns up to `max` addresses that any endpoint learned by a name. Empty for an unknown or expired name. */
export function knownAddresses(
  { names, ipcache }: CoreState,
  name: Uint8Array,
  max: number,
): readonly Prefix[] {
  const length = nameLength(name)
  const row = names.names.find(name, 0, length, hashOctets(name, 0, length))
  const addresses: Prefix[] = []
  if (row === 0) return addresses
  const { mappings } = names
  for (let at = names.names.firstMapping[row]!; at !== 0; at = mappings.nextOfName[at]!) {
    if (addresses.length === max) break
    addresses.push(ipcache.prefixes.prefix(mappings.prefix[at]!))
  }
  return addresses
}

/** How many names of an address are checked at most, to find names that the endpoint asked itself. */
const OWN_LOOKED_AT_MAX = 256

/** How many entries of one name and address are checked at most, to find one that is old enough. */
const ENTRIES_LOOKED_AT_MAX = 16

/**
 * Returns up to `max` names by which an address was learned, as text. If `asker` asked any of these names, returns only names that `asker`
 * asked; else names that other endpoints asked. `asOf`: only names whose answer came up to this time (`Clock.now()`).
 */
export function namesOf(
  { names, ipcache }: CoreState,
  address: Prefix,
  max: number,
  asker?: EndpointId,
  asOf = Number.POSITIVE_INFINITY,
): readonly string[] {
  const row = ipcache.prefixes.find(address.family, address.octets, 0, address.length)
  const { mappings, entries } = names
  const own: number[] = []
  const others: number[] = []
  if (row === 0) return []
  const lookedAtMax = asker === undefined ? max : OWN_LOOKED_AT_MAX
  let lookedAt = 0
  for (let at = mappings.firstOfPrefix[row]!; at !== 0; at = mappings.nextOfPrefix[at]!) {
    if (own.length === max || lookedAt++ === lookedAtMax) break
    const asked = asker === undefined ? 0 : entries.find(at, asker)
    const name = mappings.name[at]!
    if (asked !== 0) {
      if (entries.learnedAt[asked]! <= asOf) own.push(name)
    } else if (others.length < max && isOlder(entries, mappings.firstEntry[at]!, asOf)) {
      others.push(name)
    }
  }
  return (own.length > 0 ? own : others).map((name) => names.names.format(name))
}

/** True if an endpoint had learned one of the entries by the time `asOf`. */
function isOlder(entries: EntryTable, first: number, asOf: number): boolean {
  if (asOf === Number.POSITIVE_INFINITY) return true
  let at = first
  for (let i = 0; i < ENTRIES_LOOKED_AT_MAX && at !== 0; i++) {
    if (entries.learnedAt[at]! <= asOf) return true
    at = entries.nextOfMapping[at]!
  }
  return false
}
