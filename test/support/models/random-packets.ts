// Random packets (random-packets.c), as a program that sends them and as octets, and the known and allowed addresses among their
// destinations.

import { execFileSync } from 'node:child_process'
import { LEARNED, type PolicyRow } from '../../contract/bench.ts'

/** The addresses that random-packets.h calls open, and those that it calls open at port 443. */
export const KNOWN = [
  ['192.0.2.1/32', LEARNED, 9],
  ['2001:db8::1/128', LEARNED, 10],
  ['192.0.2.2/32', LEARNED + 1, 9],
  ['2001:db8::2/128', LEARNED + 1, 10],
] as const
export const POLICIES: readonly PolicyRow[] = [
  { identity: LEARNED },
  { identity: LEARNED + 1, protocol: 6, port: 443 },
  { identity: LEARNED + 1, protocol: 17, port: 443 },
]

/** The frames of packets FIRST to FIRST + COUNT. */
export function printPackets(
  program: string,
  seed: number,
  first: number,
  count: number,
): readonly Uint8Array[] {
  const args = ['print', seed, first, count].map(String)
  const octets = execFileSync(program, args, { maxBuffer: 1 << 30 })
  const frames: Uint8Array[] = []
  for (let at = 0; at < octets.length;) {
    const size = octets.readUInt16LE(at)
    frames.push(Uint8Array.from(octets.subarray(at + 2, at + 2 + size)))
    at += 2 + size
  }
  return frames
}
