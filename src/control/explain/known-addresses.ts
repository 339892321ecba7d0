// The addresses that a name is known to have led to.

import type { EndpointId } from '../../core/ids.ts'
import { nameLength } from '../../core/name.ts'
import { hashOctets } from '../../core/keyed-hash.ts'
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

/** Names of one address that are looked at for those that an endpoint asked itself. */
const OWN_LOOKED_AT_MAX = 256

/** The first names that are known to have led to an address, as text; those that `asker` was answered come before others. */
export function namesOf(
  { names, ipcache }: CoreState,
  address: Prefix,
  max: number,
  asker?: EndpointId,
): readonly string[] {
  const row = ipcache.prefixes.find(address.family, address.octets, 0, address.length)
  const { mappings, pairs } = names
  const own: number[] = []
  const others: number[] = []
  if (row === 0) return []
  const lookedAtMax = asker === undefined ? max : OWN_LOOKED_AT_MAX
  let lookedAt = 0
  for (let at = mappings.firstOfPrefix[row]!; at !== 0; at = mappings.nextOfPrefix[at]!) {
    if (own.length === max || lookedAt++ === lookedAtMax) break
    const isOwn = asker !== undefined && pairs.find(at, asker) !== 0
    if (isOwn || others.length < max) (isOwn ? own : others).push(mappings.name[at]!)
  }
  return [...own, ...others].slice(0, max).map((name) => names.names.format(name))
}
