// Messages with removable addresses, and the check that nothing else changes; for the tests of AnswerStrip.

import assert from 'node:assert/strict'
import * as packet from 'dns-packet'
import { AnswerStrip } from '../../src/dns/answer-strip.ts'
import { concat, mkAnswer, type MkMessage, type MkRecord } from './messages.ts'

export const www = 'www.example'
export const BAD = '127.0.0.1'
export const BAD_OCTETS = [127, 0, 0, 1]
export const GOOD = [192, 0, 2, 1]

/** IPv4 addresses that begin with 127 are unwanted. */
export const loopback = {
  isUnwanted: (family: number, octets: Uint8Array, at: number) =>
    family === 4 && octets[at] === 127,
}

export const answer = (answers: readonly MkRecord[], change: MkMessage = {}): Uint8Array =>
  mkAnswer(www, 1, answers, change)

/** What is removed (`each` hint, or the unwanted addresses), and the octets of the remaining message. */
export type StripRow = readonly [
  reason: string,
  hints: 'each' | 'unwanted',
  message: Uint8Array,
  left: Uint8Array | 'same' | 'bad',
]

export function checkStrip(rows: readonly StripRow[]): void {
  const strip = new AnswerStrip()
  for (const [reason, hints, message, left] of rows) {
    const slab = concat(Uint8Array.of(7, 7, 7), message, new Uint8Array(40).fill(127))
    const result = strip.strip(slab, 3, message.length, hints === 'each', loopback)
    if (typeof left === 'string') {
      assert.equal(result, left, reason)
      continue
    }
    assert.equal(result, 'gone', reason)
    const got = strip.octets.slice(0, strip.length)
    assert.equal(Buffer.from(got).toString('hex'), Buffer.from(left).toString('hex'), reason)
    // An independent reader accepts the result.
    assert.equal(packet.decode(Buffer.from(got)).questions?.[0]?.name, www, reason)
  }
}
