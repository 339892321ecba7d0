// ServiceParams finds the address hints in an SVCB or HTTPS record (RFC 9460 2.2). Only `read` writes the fields. They stay valid until
// the next `read`, and do not refer to the message.
//
// `read` is strict. Keys must be in ascending order. Every length must end inside RDATA. A hint must be a whole number of addresses and
// not empty. The target must be a name without compression. A record that breaks a rule has no hints (docs/spec/correctness S5).
// Cost: one pass over RDATA, no allocation.

import { LABEL_OCTETS_MAX, NAME_OCTETS_MAX } from '../core/name.ts'
import { u16 } from './wire.ts'

/** Keys of parameters (RFC 9460 14.3.2). */
export const KEY_MANDATORY = 0
export const KEY_IPV4_HINT = 4
export const KEY_IPV6_HINT = 6
/** Octets of key and length before each value. */
export const PARAM_FIXED_OCTETS = 4
const PRIORITY_OCTETS = 2

export class ServiceParams {
  /** 0: AliasMode, whose parameters clients ignore (RFC 9460 2.4.2). */
  priority = 0
  /** The offset of the first parameter. */
  paramsAt = 0
  /** The offset of each hint's value, and its number of octets. With 0 octets, the record has no such hint. */
  ipv4At = 0
  ipv4Octets = 0
  ipv6At = 0
  ipv6Octets = 0

  /** Reads the RDATA in [at, end). Returns false if it is malformed; the fields are then invalid. */
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

  /** True if a client can use hints of the record: it has hints, and is not in AliasMode. */
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

/** Returns the offset after the TargetName at `at`, or -1 if it is no name without pointers (RFC 9460 2.2). */
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
