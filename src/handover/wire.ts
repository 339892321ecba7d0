// This file encodes and decodes the messages of a take-over. Queries are octets of a fixed layout, and everything else is JSON.
// The two daemons can be of different versions. They understand each other if their PROTOCOL is equal.

import type { Fate, HandedConnection, HandedListener, HandedQuery } from '../proxy/handed.ts'

export const PROTOCOL = 1

/**
 * Milliseconds that a successor waits for each reply. Then it treats the running daemon as lost. (start-limit.ts: how long the running
 * daemon waits.)
 */
export const REPLY_MAX_MS = 5000

/** Kinds of messages, in the order in which they are sent. The successor sends odd kinds, the running daemon even kinds. */
export const HELLO = 1
export const GIVEN = 2
export const READY = 3
export const GO = 4
export const QUERIES = 6
export const DONE = 8
/** The running daemon refuses and continues to serve. The text gives the reason. */
export const REFUSED = 10

export interface Hello {
  readonly protocol: number
  readonly version: string
  /** Where the successor will listen, as `4 127.0.0.1 53 explicit`: family, address, port and mode. */
  readonly listeners: readonly string[]
}

/** The descriptors of this message are the UDP and TCP sockets of each listener, then the connections, then the locks. */
export interface Given {
  readonly listeners: readonly HandedListener[]
  readonly connections: readonly HandedConnection[]
  /** True if another process also keeps the listening sockets open. */
  readonly outlives: boolean
  readonly supervisor: { readonly socket: string; readonly watchdogMs: number } | undefined
  readonly locks: readonly number[]
}

const FATES: readonly Fate[] = ['asked', 'answered', 'timeout', 'socket']
const FAMILY = 0
const TRANSPORT = 1
const FATE = 2
const OVER_TCP = 3
const PORT = 4
const ASKED_PORT = 6
const CHANNEL = 8
const INTERFACE = 12
const ADDRESS = 16
const ASKED = 32
const QUERY_LENGTH = 48
const ANSWER_LENGTH = 50
const HEAD = 52

export function encodeText(value: object): Uint8Array {
  return Buffer.from(JSON.stringify(value))
}

export function decodeText(octets: Uint8Array): unknown {
  return JSON.parse(Buffer.from(octets).toString())
}

export function encodeQuery(handed: HandedQuery): Uint8Array {
  const { query, answer } = handed
  const out = Buffer.alloc(HEAD + query.length + answer.length)
  out[FAMILY] = handed.family
  out[TRANSPORT] = handed.transport
  out[FATE] = FATES.indexOf(handed.fate)
  out[OVER_TCP] = handed.overTcp ? 1 : 0
  out.writeUInt16LE(handed.port, PORT)
  out.writeUInt16LE(handed.askedPort, ASKED_PORT)
  out.writeUInt32LE(handed.channel, CHANNEL)
  out.writeUInt32LE(handed.interfaceIndex, INTERFACE)
  out.set(handed.address, ADDRESS)
  out.set(handed.asked, ASKED)
  out.writeUInt16LE(query.length, QUERY_LENGTH)
  out.writeUInt16LE(answer.length, ANSWER_LENGTH)
  out.set(query, HEAD)
  out.set(answer, HEAD + query.length)
  return out
}

/** Decodes all queries of a message. They follow each other without a gap. */
export function decodeQueries(octets: Uint8Array): readonly HandedQuery[] {
  const all: HandedQuery[] = []
  const from = Buffer.from(octets.buffer, octets.byteOffset, octets.length)
  for (let at = 0; at + HEAD <= from.length;) {
    const queryEnd = at + HEAD + from.readUInt16LE(at + QUERY_LENGTH)
    const end = queryEnd + from.readUInt16LE(at + ANSWER_LENGTH)
    all.push({
      family: from[at + FAMILY] === 4 ? 4 : 6,
      transport: from[at + TRANSPORT]!,
      fate: FATES[from[at + FATE]!] ?? 'asked',
      overTcp: from[at + OVER_TCP] === 1,
      port: from.readUInt16LE(at + PORT),
      askedPort: from.readUInt16LE(at + ASKED_PORT),
      channel: from.readUInt32LE(at + CHANNEL),
      interfaceIndex: from.readUInt32LE(at + INTERFACE),
      address: from.subarray(at + ADDRESS, at + ADDRESS + 16),
      asked: from.subarray(at + ASKED, at + ASKED + 16),
      query: from.subarray(at + HEAD, queryEnd),
      answer: from.subarray(queryEnd, end),
    })
    at = end
  }
  return all
}

/** Returns the descriptors apart from the octets, in the order of `Given`. */
export function encodeGiven(given: Given): { octets: Uint8Array; descriptors: readonly number[] } {
  const { listeners, connections, locks, outlives, supervisor } = given
  const value = {
    outlives,
    supervisor,
    locks: locks.length,
    listeners: listeners.map(({ octets, family, port, mode }) => {
      return { family, port, mode, octets: hex(octets) }
    }),
    connections: connections.map((each) => ({
      ...each,
      peer: hex(each.peer),
      asked: hex(each.asked),
      unread: hex(each.unread),
      unsent: hex(each.unsent),
    })),
  }
  const descriptors = [
    ...listeners.flatMap(({ udp, tcp }) => [udp, tcp]),
    ...connections.map(({ descriptor }) => descriptor),
    ...locks,
  ]
  return { octets: encodeText(value), descriptors }
}

interface GivenText {
  readonly outlives: boolean
  readonly supervisor?: Given['supervisor']
  readonly locks: number
  readonly listeners: readonly (Omit<HandedListener, 'octets'> & { readonly octets: string })[]
  readonly connections: readonly (Omit<HandedConnection, 'peer' | 'asked' | 'unread' | 'unsent'> &
    Readonly<Record<'peer' | 'asked' | 'unread' | 'unsent', string>>)[]
}

/** Throws if the octets are not what `encodeGiven` makes. */
export function decodeGiven(octets: Uint8Array, descriptors: readonly number[]): Given {
  const text = parseGiven(octets)
  const left = [...descriptors]
  const next = (): number => {
    const found = left.shift()
    if (found === undefined) throw new Error('descriptors are missing')
    return found
  }
  const listeners = text.listeners.map((each) => {
    return { ...each, octets: unhex(each.octets), udp: next(), tcp: next() }
  })
  const connections = text.connections.map((each) => ({
    ...each,
    descriptor: next(),
    peer: unhex(each.peer),
    asked: unhex(each.asked),
    unread: unhex(each.unread),
    unsent: unhex(each.unsent),
  }))
  const { outlives, supervisor } = text
  return { outlives, supervisor, listeners, connections, locks: left }
}

function parseGiven(octets: Uint8Array): GivenText {
  const value = decodeText(octets)
  if (!isGiven(value)) throw new Error('what the running daemon handed over is not readable')
  return value
}

/** Checks little, because the writer is a namegate of the same protocol and the same user. */
function isGiven(value: unknown): value is GivenText {
  return typeof value === 'object' && value !== null && 'listeners' in value && 'locks' in value
}

function hex(octets: Uint8Array): string {
  return Buffer.from(octets).toString('hex')
}

function unhex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'hex'))
}
