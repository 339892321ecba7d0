// Identities that are the same on every node (Cilium's numbers where Cilium has one), and the classes of addresses. A class says
// what kind of address it is when nothing more is known. Policy for a whole class has one entry at the class's reserved number,
// however many identities there are.

import { identity, type Identity } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'

/** Not an identity: in a policy key it stands for every identity. */
export const ANY_IDENTITY: Identity = identity(0)
export const HOST: Identity = identity(1)
export const WORLD: Identity = identity(2)
export const WORLD_IPV4: Identity = identity(9)
export const WORLD_IPV6: Identity = identity(10)
/** Class of the addresses of known endpoints; ours, not Cilium's. */
export const ENDPOINT_CLASS: Identity = identity(11)
/** Class of the addresses of external resources; ours, not Cilium's. */
export const RESOURCE_CLASS: Identity = identity(12)

/** The label of addresses that an endpoint with `default-egress: allow-named` learned by asking; in its own scope only. */
export const NAMED_LABEL = 'reserved:named'

/** Cilium's local scope: `1 << 24` with 24 bits of number. */
export const FIRST_LOCAL: Identity = identity(2 ** 24)
export const LAST_LOCAL: Identity = identity(2 ** 25 - 1)

/** The class and the identity of an address in no known prefix. */
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
