// ServiceStrip removes address hints from the RDATA of an SVCB or HTTPS record (RFC 9460 7.3): all hints, or the unwanted addresses. If
// a hint parameter has no addresses left, it is removed, and its key is removed from the list of mandatory keys. Otherwise no client
// could use the record, because a mandatory parameter would be missing (RFC 9460 8). All other parameters, also `ech`, stay the same.
// answer-strip.ts calls `fateOf` for a record, and then `write` if the fate is REWRITE. Cost: one pass over RDATA.

import { isMapped, type Family } from '../core/ip.ts'
import type { MessageCopy } from './message-copy.ts'
import {
  KEY_IPV4_HINT,
  KEY_IPV6_HINT,
  KEY_MANDATORY,
  PARAM_FIXED_OCTETS,
  ServiceParams,
} from './svcb.ts'
import { u16 } from './wire.ts'

/** Tells which addresses must be removed. An IPv4-mapped IPv6 address is given as IPv4. */
export interface UnwantedAddresses {
  isUnwanted(family: Family, octets: Uint8Array, offset: number): boolean
}

/** What happens to a record: it stays the same, is removed, or is written without some hints. */
export const KEEP = 0
export const REMOVE = 1
export const REWRITE = 2

export class ServiceStrip {
  readonly #params = new ServiceParams()
  #buf: Uint8Array = new Uint8Array(0)
  #isEach = false
  #unwanted: UnwantedAddresses | undefined
  /** The number of addresses that stay in each hint. */
  #ipv4Left = 0
  #ipv6Left = 0

  /** Begins a message. `isEach`: its records lose every hint. Otherwise they lose the unwanted addresses. */
  begin(buf: Uint8Array, isEach: boolean, unwanted: UnwantedAddresses | undefined): void {
    this.#buf = buf
    this.#isEach = isEach
    this.#unwanted = unwanted
  }

  /** Returns what happens to the record with RDATA in [data, end): KEEP, REWRITE, or REMOVE if it cannot be read. */
  fateOf(data: number, end: number): number {
    const params = this.#params
    if (!params.read(this.#buf, data, end)) return REMOVE
    const { ipv4At, ipv4Octets, ipv6At, ipv6Octets } = params
    this.#ipv4Left = this.#countLeft(4, ipv4At, ipv4At + ipv4Octets)
    this.#ipv6Left = this.#countLeft(6, ipv6At, ipv6At + ipv6Octets)
    const isWhole = this.#ipv4Left === ipv4Octets / 4 && this.#ipv6Left === ipv6Octets / 16
    return isWhole ? KEEP : REWRITE
  }

  /** Writes the record that `fateOf` has just read. Returns the number of removed addresses. */
  write(copy: MessageCopy, data: number, end: number): number {
    const buf = this.#buf
    const { ipv4Octets, ipv6Octets, paramsAt } = this.#params
    copy.copy(data, data + 2)
    copy.copyName(data + 2)
    for (let at = paramsAt; at < end;) {
      const key = u16(buf, at)
      const value = at + PARAM_FIXED_OCTETS
      const next = value + u16(buf, at + 2)
      if (key === KEY_IPV4_HINT) this.#writeHint(copy, 4, this.#ipv4Left, value, next)
      else if (key === KEY_IPV6_HINT) this.#writeHint(copy, 6, this.#ipv6Left, value, next)
      else if (key === KEY_MANDATORY) this.#writeMandatory(copy, value, next)
      else copy.copy(at, next)
      at = next
    }
    return ipv4Octets / 4 + ipv6Octets / 16 - this.#ipv4Left - this.#ipv6Left
  }

  #writeHint(copy: MessageCopy, family: Family, left: number, value: number, end: number): void {
    if (left === 0) return
    const size = family === 4 ? 4 : 16
    copy.put16(family === 4 ? KEY_IPV4_HINT : KEY_IPV6_HINT)
    copy.put16(left * size)
    for (let at = value; at < end; at += size) {
      if (!this.#goes(family, at)) copy.copy(at, at + size)
    }
  }

  /** Writes the mandatory keys without the keys of removed hints. Writes nothing if no key is left. */
  #writeMandatory(copy: MessageCopy, value: number, end: number): void {
    let left = 0
    for (let at = value; at < end; at += 2) if (!this.#isGone(at, end)) left += 2
    if (left === 0 && value < end) return
    copy.put16(KEY_MANDATORY)
    copy.put16(Math.min(left, end - value))
    for (let at = value; at < end; at += 2) {
      if (!this.#isGone(at, end)) copy.copy(at, Math.min(at + 2, end))
    }
  }

  /** Returns true if the key at `at` belongs to a hint that loses all its addresses. */
  #isGone(at: number, end: number): boolean {
    if (at + 2 > end) return false
    const key = u16(this.#buf, at)
    const { ipv4Octets, ipv6Octets } = this.#params
    if (key === KEY_IPV4_HINT) return ipv4Octets > 0 && this.#ipv4Left === 0
    return key === KEY_IPV6_HINT && ipv6Octets > 0 && this.#ipv6Left === 0
  }

  #countLeft(family: Family, from: number, end: number): number {
    let left = 0
    for (let at = from; at < end; at += family === 4 ? 4 : 16) if (!this.#goes(family, at)) left++
    return left
  }

  #goes(family: Family, at: number): boolean {
    return this.#isEach || isUnwanted(this.#unwanted, family, this.#buf, at)
  }
}

/** Returns true if the address at `at` is unwanted. An IPv4-mapped address is checked as IPv4. */
export function isUnwanted(
  unwanted: UnwantedAddresses | undefined,
  family: Family,
  buf: Uint8Array,
  at: number,
): boolean {
  if (unwanted === undefined) return false
  if (family === 6 && isMapped(buf, at)) return unwanted.isUnwanted(4, buf, at + 12)
  return unwanted.isUnwanted(family, buf, at)
}
