// This file has the reserved identities, which are the same on every node, and the classes of addresses. If Cilium has a number for such
// an identity, it is used here. Every address has a class: the node, an endpoint, a resource or the world. Policy for a whole class
// needs one entry, at the reserved number of the class, however many identities the class has.

import { identity, type Identity } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'

/** This number is no identity. In the key of a policy entry it stands for every identity. */
export const ANY_IDENTITY: Identity = identity(0)
export const HOST: Identity = identity(1)
export const WORLD: Identity = identity(2)
export const WORLD_IPV4: Identity = identity(9)
export const WORLD_IPV6: Identity = identity(10)
/** Class of the addresses of known endpoints. Cilium has no such number. */
export const ENDPOINT_CLASS: Identity = identity(11)
/** Class of the addresses of external resources. Cilium has no such number. */
export const RESOURCE_CLASS: Identity = identity(12)

/** The label of every address that an endpoint with `default-egress: allow-named` learned, in the endpoint's own scope only. */
export const NAMED_LABEL = 'reserved:named'

/** The smallest number that namegate gives to a label set: the beginning of Cilium's local scope, which has 24 bits. */
export const FIRST_LOCAL: Identity = identity(2 ** 24)
export const LAST_LOCAL: Identity = identity(2 ** 25 - 1)

/** Returns the number that is both class and identity of an address in no known prefix. */
export function worldOf(family: Family): Identity {
  return family === 4 ? WORLD_IPV4 : WORLD_IPV6
}

export const RESERVED_NAMES: ReadonlyMap<number, string> = new Map([
  [HOST, 'reserved:host'],
  [WORLD, 'reserved:world'],
  [WORLD_IPV4, 'reserved:world-ipv4'],
  [WORLD_IPV6, 'reserved:world-ipv6'],
  [ENDPOINT_CLASS, 'reserved:endpoint'],
  [RESOURCE_CLASS, 'reserved:resource'],
])
