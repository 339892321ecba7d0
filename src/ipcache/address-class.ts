// Of which class a prefix is: the node's, a known endpoint's, a resource's or the world's. Its own facts decide, the kind that
// comes first in precedence; else the prefix around it.

import { identity, type Identity } from '../core/ids.ts'
import { ENDPOINT_CLASS, HOST, RESOURCE_CLASS, worldOf } from '../identity/reserved.ts'
import { isKnownClass } from './derive.ts'
import { OWNER_ENDPOINT, OWNER_NAME, OWNER_NODE, OWNER_RESOURCE, type Facts } from './facts.ts'
import type { PrefixTable } from './prefix-table.ts'

/** `around`: the row of the containing prefix, 0 without one. */
export function classOf(
  row: number,
  around: number,
  prefixes: PrefixTable,
  facts: Facts,
): Identity {
  let kind: number = OWNER_NAME
  for (let fact = prefixes.firstFact[row]!; fact !== 0; fact = facts.next[fact]!) {
    kind = Math.min(kind, facts.kind[fact]!)
  }
  if (kind === OWNER_NODE) return HOST
  if (kind === OWNER_ENDPOINT) return ENDPOINT_CLASS
  if (kind === OWNER_RESOURCE) return RESOURCE_CLASS
  const inherited = identity(prefixes.addressClass[around]!)
  return isKnownClass(inherited) ? inherited : worldOf(prefixes.family(row))
}
