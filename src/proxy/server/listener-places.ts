// The places of a listener: the addresses at which it can listen. A listener without an address listens on every address, or with mode
// redirect on loopback, where its rules deliver queries. So no other machine reaches a redirect listener. The function has no side effects.

import type { Family } from '../../core/ip.ts'
import type { ListenerConfig, ListenerMode } from '../../config/config.ts'

export interface ListenerPlace {
  readonly family: Family
  readonly octets: Uint8Array
}

/** The address of zeros: every address of a family. */
export const EVERY_ADDRESS = new Uint8Array(16)
const LOOPBACK = { 4: new Uint8Array(16), 6: new Uint8Array(16) } as const
LOOPBACK[4].set([127, 0, 0, 1])
LOOPBACK[6][15] = 1

/** The address that a listener without an address binds. */
export function defaultAddress(family: Family, mode: ListenerMode): Uint8Array {
  return mode === 'redirect' ? LOOPBACK[family] : EVERY_ADDRESS
}

/**
 * Where the sockets of a listener can be that another process bound. A redirect listener also takes sockets on every address, as an earlier
 * version bound them.
 */
export function placesOfListener({
  address,
  mode,
}: Pick<ListenerConfig, 'address' | 'mode'>): readonly ListenerPlace[] {
  if (address !== undefined) return [address]
  const chosen = ([4, 6] as const).map((family) => ({
    family,
    octets: defaultAddress(family, mode),
  }))
  if (mode !== 'redirect') return chosen
  return [...chosen, ...chosen.map(({ family }) => ({ family, octets: EVERY_ADDRESS }))]
}
