// The parameters of an SVCB or HTTPS record (RFC 9460 2.2), as far as namegate needs them: where the address hints and
// the list of mandatory keys lie. Written by `read` alone, holds until the next `read`; the message is not kept.
//
// Strict: keys rise, every length ends inside RDATA, a hint is a whole number of addresses and not empty, the target is
// a name without compression. What fails that has no hints, whatever stands in it (docs/spec/correctness S5).
// Cost: one pass over RDATA, no allocation.

import { LABEL_OCTETS_MAX, NAME_OCTETS_MAX } from '../core/name.ts'
import { u16 } from './wire.ts'

/** Keys of RFC 9460 14.3.2. */
export const KEY_MANDATORY = 0
export const KEY_IPV4_HINT = 4
export const KEY_IPV6_HINT = 6
/** Key and length, in front of each value. */
export const PARAM_FIXED_OCTETS = 4
const PRIORITY_OCTETS = 2

export class ServiceParams {
  /** 0: AliasMode, whose parameters clients ignore (RFC 9460 2.4.2). */
  priority = 0
  /** Where the parameters begin. */
  paramsAt = 0
  /** Values of the hints, and their octets; 0 octets: no such hint. */
  ipv4At = 0
  ipv4Octets = 0
  ipv6At = 0
  ipv6Octets = 0

  /** Reads the RDATA in [at, end); false when it is malformed: then no field means anything. */
  read(buf: Uint8Array, at: number, end: number): boolean {
    this.ipv4Octets = this.ipv6Octets = 0
    if (at + PRIORITY_OCTETS > end) return false
    this.priority = u16(buf, at)
    this.paramsAt = endOfTarget(buf, at + PRIORITY_OCTETS, end)
    if (this.paramsAt < 0) return false
    let last = -1
    for (let param = this.paramsAt; param < end;) {
      const value = param + PARAM_FIXED_OCTETS
      if (value > end) return false
      const key = u16(buf, param)
      const size = u16(buf, param + 2)
      if (key <= last || value + size > end) return false
      if (!this.#keep(key, value, size)) return false
      last = key
      param = value + size
    }
    return true
  }

  /** Whether a client may use hints of this record: it has some, and isn't in AliasMode. */
  get hasHints(): boolean {
    return this.priority !== 0 && this.ipv4Octets + this.ipv6Octets > 0
  }

  #keep(key: number, at: number, size: number): boolean {
    if (key === KEY_IPV4_HINT) {
      this.ipv4At = at
      this.ipv4Octets = size
      return size !== 0 && size % 4 === 0
    }
    if (key === KEY_IPV6_HINT) {
      this.ipv6At = at
      this.ipv6Octets = size
      return size !== 0 && size % 16 === 0
    }
    return true
  }
}

/** The offset behind the TargetName at `at`, which has no pointers (RFC 9460 2.2); -1 when it is no such name. */
function endOfTarget(buf: Uint8Array, at: number, end: number): number {
  const limit = Math.min(end, at + NAME_OCTETS_MAX)
  while (at < limit) {
    const octet = buf[at]!
    if (octet > LABEL_OCTETS_MAX) return -1
    at += octet + 1
    if (octet === 0) return at
  }
  return -1
}
