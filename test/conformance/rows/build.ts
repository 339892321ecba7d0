// Builders for several rows: queries, answers of a given size, options.

import { withId } from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import type { Asking } from './row.ts'
import {
  a,
  concat,
  mkMessage,
  opt,
  option,
  QUERY_FLAGS,
  type MkMessage,
  type MkOpt,
  type MkRecord,
} from '../../support/messages.ts'

export const TXT = 16
export const SOA = 6
export const NS = 2
export const NSID = 3
export const COOKIE = 10
export const KEEPALIVE = 11
export const CLIENT_SUBNET = 8
export const UNKNOWN_OPTION = 65_001

/** A query with RD for an A record. */
export function ask(name: readonly string[], change: MkMessage = {}): MkMessage {
  return { flags: QUERY_FLAGS, questions: [{ name }], ...change }
}

/** The same with an OPT record. */
export function askOpt(
  name: readonly string[],
  edns: MkOpt = {},
  change: MkMessage = {},
): MkMessage {
  return ask(name, { additionals: [opt(edns)], ...change })
}

/** The answer with the exchange's own address. `change` can replace any part. */
export function own(asking: Asking, change: MkMessage = {}): Uint8Array {
  return answerTo(asking, { answers: [ownRecord(asking)], ...change })
}

export function ownRecord({ question, address }: Asking, ttl?: number): MkRecord {
  return a(question.name, address, ttl)
}

/** An answer of exactly so many octets, padded with one TXT record. */
export function sized(asking: Asking, octets: number, additionals: readonly MkRecord[] = []) {
  const filled = (size: number): Uint8Array => {
    const data = new Uint8Array(size).fill(0x61)
    for (let at = 0; at < size; at += 256) data[at] = Math.min(255, size - at - 1)
    const { name } = asking.question
    return own(asking, { answers: [{ owner: name, type: TXT, data }], additionals })
  }
  return filled(octets - filled(0).length)
}

/** Options one after the other. */
export function options(...list: readonly (readonly [code: number, size: number])[]): Uint8Array {
  return concat(...list.map(([code, size]) => option(code, new Uint8Array(size).fill(0x5a))))
}

/** Header, question and OPT with TC: the answer to a UDP client for which the true answer is too long. */
export function truncated(query: MkMessage, flags: number, edns?: MkOpt): Uint8Array {
  return mkMessage({
    id: query.id ?? 0,
    flags,
    questions: query.questions ?? [],
    additionals: edns === undefined ? [] : [opt({ udpSize: 1232, ...edns })],
  })
}

/** Octets that are neither a name nor text. */
export function bytes(count: number): Uint8Array {
  return Uint8Array.from({ length: count }, (_, i) => (i * 37) & 255)
}

/** Over UDP an answer with another id, over TCP the right one. */
export function mismatchThen(asking: Asking, right: () => Uint8Array): readonly Uint8Array[] {
  return asking.transport === 'udp' ? [withId(own(asking), asking.id ^ 1)] : [right()]
}
