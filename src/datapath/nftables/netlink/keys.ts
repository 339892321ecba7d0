// This file encodes keys and data of elements. Fields follow each other, each padded to 4 octets, as layout.ts lists them.

import { endianness } from 'node:os'
import type { Field } from '../rules/layout.ts'

const LITTLE = endianness() === 'LE'

/** The value of one field: a number, or octets (addresses, names). */
export type Value = number | Uint8Array

const WIDTH: Readonly<Record<Field, number>> = {
  nfproto: 1,
  integer: 4,
  ip4: 4,
  ip6: 16,
  mac: 6,
  protocol: 1,
  port: 2,
  mark: 4,
  ifindex: 4,
  uid: 4,
  ifname: 16,
}

/** Encodes fields. An address may be longer than its field. */
export function pack(fields: readonly Field[], values: readonly Value[]): Uint8Array {
  const size = fields.reduce((sum, field) => sum + ((WIDTH[field] + 3) & ~3), 0)
  const octets = new Uint8Array(fields.length === 1 ? WIDTH[fields[0] ?? 'mark'] : size)
  const view = new DataView(octets.buffer)
  let at = 0
  fields.forEach((field, i) => {
    const value = values[i] ?? 0
    if (typeof value !== 'number') octets.set(value.subarray(0, WIDTH[field]), at)
    else if (WIDTH[field] === 1) octets[at] = value
    else if (field === 'port') view.setUint16(at, value)
    else view.setUint32(at, value, LITTLE)
    at += (WIDTH[field] + 3) & ~3
  })
  return octets
}

/** The data of a map that packets look up. Each value follows a word without meaning (see `lookup`). */
export function data(...values: readonly number[]): Uint8Array {
  const octets = new Uint8Array(values.length * 8)
  const view = new DataView(octets.buffer)
  values.forEach((value, i) => view.setUint32(i * 8 + 4, value, LITTLE))
  return octets
}

/** The data of a map that packets never look up: the values alone. */
export function words(...values: readonly number[]): Uint8Array {
  return new Uint8Array(new Uint32Array(values).buffer)
}

export function wordAt(octets: Uint8Array, at: number): number {
  return new DataView(octets.buffer, octets.byteOffset).getUint32(at, LITTLE)
}

export function shortAt(octets: Uint8Array, at: number): number {
  return (octets[at]! << 8) | octets[at + 1]!
}
