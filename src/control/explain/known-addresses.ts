// The addresses that a name is known to have led to.

import { hashOctets, nameLength } from '../../core/name.ts'
import type { Prefix } from '../../core/ip.ts'
import type { CoreState } from '../core-state.ts'

/** The first of them, whoever asked; none for a name that nobody asked or that expired. */
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

/** The first names that are known to have led to an address, as text. */
export function namesOf(
  { names, ipcache }: CoreState,
  address: Prefix,
  max: number,
): readonly string[] {
  const row = ipcache.prefixes.find(address.family, address.octets, 0, address.length)
  const { mappings } = names
  const found: string[] = []
  if (row === 0) return found
  for (let at = mappings.firstOfPrefix[row]!; at !== 0; at = mappings.nextOfPrefix[at]!) {
    if (found.length === max) break
    found.push(names.names.format(mappings.name[at]!))
  }
  return found
}
