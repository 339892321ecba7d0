// The addon of UDP sockets without a kernel. A turn receives the given queries, "sends" them, receives an answer to each, and counts the
// datagrams that leave for clients. The fake's own work does not count: a stage lasts from the return of one function of the addon to the
// call of the next.
//
// Queries and answers are those of test/bench/peers: names of one length, whose digits give the address.

import { parseName } from '../../../src/core/name.ts'
import {
  AREA_ANSWERS,
  AREA_IN_FLIGHT,
  AREA_QUERIES,
  CLIENTS_QUERIES,
  ROW_HANDLE,
  ROW_ID,
  ROW_OFFSET,
  ROW_WORDS,
  ROWS_MAX,
  SPEC_CHANNEL,
  SPEC_FLAGS,
  UDP_LISTENER,
  type UdpAddon,
  type UdpClientColumns,
} from '../../../src/native/udp/udp.ts'
import { mkQuery } from './packets.ts'
import { setAddress } from './world.ts'

/** Stages of a turn, in order; the learner marks the last three. */
export const STAGES = ['admit and forward', 'receive and match', 'learn', 'commit', 'release']
export const ADMIT = 0
export const RECEIVE = 1
export const LEARN = 2
export const COMMIT = 3
export const RELEASE = 4

const QUERY = mkTemplate()
const OPT_OCTETS = 11
const QUESTION_END = QUERY.length - OPT_OCTETS
/** The eight digits follow the length and first letter of the first label. The zone's digit is in the second label. */
const DIGITS_AT = 12 + 2
const ZONE_AT = 12 + 10 + 2
/** A record of the question's name: A, IN, 60 s, 4 octets. */
const RECORD = Uint8Array.of(0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
const HEX = new TextEncoder().encode('0123456789abcdef')
const CLIENTS = 16

type Columns = readonly [Uint32Array, Uint32Array, Uint32Array | Uint8Array]

export class LoopAddon implements UdpAddon {
  /** Milliseconds of each stage in the last turn. */
  readonly spans = new Float64Array(STAGES.length)
  /** Number of datagrams that have left for clients. */
  replies = 0
  #turn: () => void = () => undefined
  #sockets = 0
  #listener = -1
  #channel = 0
  readonly #areas = new Map<number, Uint8Array>()
  #clients: UdpClientColumns | undefined
  #queries: Columns = [new Uint32Array(0), new Uint32Array(0), new Uint8Array(0)]
  #answers: Columns = [new Uint32Array(0), new Uint32Array(0), new Uint32Array(0)]
  #rows: Uint32Array = new Uint32Array(0)
  /** Rows of sent queries without an answer. */
  readonly #asked = new Uint32Array(ROWS_MAX * ROW_WORDS)
  #askedCount = 0
  #fed: readonly number[] = []
  #since = 0
  #stage = ADMIT

  /** One turn: asks for these numbers, answers them, and sends their answers. */
  run(numbers: readonly number[]): void {
    this.#fed = numbers
    this.spans.fill(0)
    this.#turn()
  }

  /** Ends the present stage and begins another. */
  mark(stage: number): void {
    const now = performance.now()
    if (this.#since > 0) this.spans[this.#stage]! += now - this.#since
    this.#stage = stage
    this.#since = now
  }

  open(turn: () => void): object {
    this.#turn = turn
    return this
  }

  shareArea(_: object, index: number, [octets]: readonly [Uint8Array]): void {
    this.#areas.set(index, octets)
  }

  shareClients(_: object, index: number, columns: UdpClientColumns): void {
    if (index === CLIENTS_QUERIES) this.#clients = columns
  }

  shareQueries(_: object, _zero: 0, columns: Columns): void {
    this.#queries = columns
  }

  shareAnswers(_: object, _zero: 0, columns: Columns): void {
    this.#answers = columns
  }

  shareSends(_: object, _zero: 0, [rows]: readonly [Uint32Array, Int32Array]): void {
    this.#rows = rows
  }

  socket(_: object, spec: Int32Array): number {
    const handle = ++this.#sockets
    if ((spec[SPEC_FLAGS]! & UDP_LISTENER) !== 0) {
      this.#listener = handle
      this.#channel = spec[SPEC_CHANNEL]!
    }
    return handle
  }

  close(): number {
    return 0
  }

  port(): number {
    return 53
  }

  descriptor(): number {
    return -1
  }

  reading(): number {
    return 0
  }

  stats(): number {
    return -1
  }

  poll(): void {
    this.#pause()
  }

  receiveQueries(_: object, start: number, room: number, stride: number): number {
    const count = Math.min(room, this.#fed.length)
    for (let i = 0; i < count; i++) this.#query(start + i, (start + i) * stride, this.#fed[i]!)
    this.#fed = []
    if (count > 0) this.mark(ADMIT)
    return count
  }

  #query(row: number, at: number, number: number): void {
    const [offsets, lengths, oversized] = this.#queries
    const [families, addresses, ports, transports, channels, interfaces, , askedPorts] =
      this.#clients ?? noColumns()
    const octets = this.#area(AREA_QUERIES)
    octets.set(QUERY, at)
    octets[at + 1] = number
    for (let i = 0; i < 8; i++) octets[at + DIGITS_AT + i] = HEX[(number >>> (28 - 4 * i)) & 15]!
    octets[at + ZONE_AT] = 0x30 + (number & 3)
    offsets[row] = at
    lengths[row] = QUERY.length
    oversized[row] = 0
    families[row] = 4
    addresses.fill(0, row * 16, row * 16 + 16)
    addresses.set([10, 255], row * 16)
    ports[row] = 40_000 + (number % CLIENTS)
    transports[row] = 0
    channels[row] = this.#channel
    interfaces[row] = 0
    askedPorts[row] = 0
  }

  receiveAnswers(_: object, stride: number): number {
    const [handles, offsets, lengths] = this.#answers
    const count = this.#askedCount
    for (let i = 0; i < count; i++) {
      handles[i] = this.#asked[i * ROW_WORDS + ROW_HANDLE]!
      offsets[i] = i * stride
      lengths[i] = this.#answer(i * stride, i * ROW_WORDS)
    }
    this.#askedCount = 0
    if (count > 0) this.mark(RECEIVE)
    return count
  }

  #answer(at: number, row: number): number {
    const octets = this.#area(AREA_ANSWERS)
    const from = this.#asked[row + ROW_OFFSET]!
    const id = this.#asked[row + ROW_ID]!
    octets.set(this.#area(AREA_IN_FLIGHT).subarray(from, from + QUESTION_END), at)
    octets.set([id >>> 8, id & 255, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 1], at)
    const record = at + QUESTION_END
    octets.set(RECORD, record)
    const data = record + RECORD.length
    let number = 0
    for (let i = 0; i < 8; i++) number = number * 16 + HEX.indexOf(octets[at + DIGITS_AT + i]!)
    setAddress(octets.subarray(data, data + 4), number)
    octets.set(QUERY.subarray(QUESTION_END), data + 4)
    return data + 4 + OPT_OCTETS - at
  }

  flush(_: object, count: number): void {
    this.#pause()
    for (let at = 0; at < count * ROW_WORDS; at += ROW_WORDS) {
      if (this.#rows[at + ROW_HANDLE] === this.#listener) this.replies++
      else this.#asked.set(this.#rows.subarray(at, at + ROW_WORDS), this.#askedCount++ * ROW_WORDS)
    }
  }

  takeReports(): number {
    return 0
  }

  stop(): void {
    this.#areas.clear()
  }

  #pause(): void {
    this.mark(ADMIT)
    this.#since = 0
  }

  #area(index: number): Uint8Array {
    return this.#areas.get(index) ?? noColumns()
  }
}

function mkTemplate(): Uint8Array {
  const parsed = parseName('k00000000.z0.bench.test')
  if (parsed.kind === 'bad') throw new Error(parsed.reason)
  return mkQuery(0, parsed.name)
}

function noColumns(): never {
  throw new Error('Cannot receive: no memory was shared')
}
