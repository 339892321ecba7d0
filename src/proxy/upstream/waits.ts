// Waits maps (socket, id) to the slot that waits for this answer. A query is sent on a socket with a random id that no other wait of
// the socket has. The wait lasts until the answer arrives or `end` is called. A slot can have several waits, one per attempt, because
// an earlier server can still answer after the next server was asked. The number of a wait is slot * width + attempt. Ids are unique
// per socket (RFC 7766 6.2.1), so a reply matches at most one wait. `add`, `find` and `remove` are O(1). A query allocates nothing.

import type { Clock } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import { nameLength } from '../../core/name.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'
import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'
import { questionEquals } from '../../dns/match.ts'
import type { MessageView } from '../../dns/message-view.ts'
import { HEADER_OCTETS, readName, u16 } from '../../dns/wire.ts'
import { hashQuestion, type InFlightTable } from '../messages/in-flight.ts'
import { SlotView } from '../messages/slot-view.ts'
import type { RandomPool } from '../../core/random.ts'
import { UPSTREAM_SOCKETS_MAX, type SocketNumbers, type UpstreamSocket } from './upstream-socket.ts'

const MIX = 0x9e3779b1
/** How many random ids are tried. If half of the ids of a socket are in use, 1 query in 2^32 fails. */
const ID_TRIES = 32
/** The number of waits of a socket that are compared with a guess, newest first. */
const COMPARED_MAX = 256

export interface WaitsParts {
  readonly clock: Clock
  readonly random: RandomPool
  readonly inFlight: InFlightTable
  readonly numbers: SocketNumbers
  /** The time of a whole query, in milliseconds. A message can get a late answer for twice this time. */
  readonly timeout: number
  /** The largest number of attempts of one query. */
  readonly attempts: number
}

export class Waits {
  readonly counters = {
    /** Queries that were sent over UDP, including all attempts. */
    sentUdp: 0,
    sentTcp: 0,
    /** Attempts without a socket or a free id, or whose send failed. */
    unsendable: 0,
  }
  /** The largest number of waits of one slot: its attempts, and the repetition over TCP after a mismatch. */
  readonly width: number
  /** The answers that can still arrive to ended waits and to probes. */
  readonly #late: LateAnswers
  readonly #clock: Clock
  readonly #random: RandomPool
  readonly #inFlight: InFlightTable
  readonly #numbers: SocketNumbers
  readonly #active: Uint8Array
  readonly #sockets: Uint16Array
  readonly #ids: Uint16Array
  /** When each wait began, in the clock's milliseconds. */
  readonly #since: Float64Array
  /** The waits of each hash bucket. */
  readonly #buckets: LinkedRows
  readonly #mask: number
  /** The waits of each socket, newest first. */
  readonly #bySocket: LinkedRows
  readonly #countBySocket: number[] = []
  readonly #view = new SlotView()
  readonly #name = new Uint8Array(255)

  constructor({ clock, random, inFlight, numbers, timeout, attempts }: WaitsParts) {
    const { capacity } = inFlight
    this.width = attempts + 1
    const waits = capacity * this.width
    this.#late = new LateAnswers(2 * timeout)
    this.#clock = clock
    this.#random = random
    this.#inFlight = inFlight
    this.#numbers = numbers
    this.#active = new Uint8Array(waits)
    this.#sockets = new Uint16Array(waits)
    this.#ids = new Uint16Array(waits)
    this.#since = new Float64Array(waits)
    const buckets = 2 ** Math.ceil(Math.log2(Math.max(capacity * 2, 2)))
    this.#buckets = new LinkedRows(waits, buckets)
    this.#mask = buckets - 1
    this.#bySocket = new LinkedRows(waits, UPSTREAM_SOCKETS_MAX)
  }

  /** Returns the wait of a slot's attempt 0..width-1. */
  at(slot: number, attempt: number): number {
    return slot * this.width + attempt
  }

  slotOf(wait: number): number {
    return (wait / this.width) | 0
  }

  sinceOf(wait: number): number {
    return this.#since[wait]!
  }

  isActive(wait: number): boolean {
    return this.#active[wait] === 1
  }

  /** Returns true if a slot has an active wait. */
  isWaiting(slot: number): boolean {
    for (let k = 0; k < this.width; k++) if (this.isActive(this.at(slot, k))) return true
    return false
  }

  /** Returns the socket of a wait. */
  socketOf(wait: number): UpstreamSocket | undefined {
    return this.#numbers.get(this.#sockets[wait]!)
  }

  /** Returns the active wait with this socket and id, or -1. */
  find(socket: number, id: number): number {
    let wait = this.#buckets.first(this.#bucket(socket, id))
    while (wait !== NO_ROW && (this.#ids[wait] !== id || this.#sockets[wait] !== socket)) {
      wait = this.#buckets.after(wait)
    }
    return wait
  }

  /** Returns the waits on a socket, newest first. The list stays as it is when waits begin and end. */
  listOf(socket: number): readonly number[] {
    const list: number[] = []
    for (let wait = this.#bySocket.first(socket); wait !== NO_ROW;) {
      list.push(wait)
      wait = this.#bySocket.after(wait)
    }
    return list
  }

  /** Returns the number of waits on a socket. */
  countOf(socket: number): number {
    return this.#countBySocket[socket] ?? 0
  }

  /** Sends the query of a slot, and begins the wait for its answer. Returns false if the query cannot be sent. */
  begin(slot: number, wait: number, socket: UpstreamSocket | undefined, now: number): boolean {
    const inFlight = this.#inFlight
    const id = socket === undefined ? -1 : this.#freeId(socket.number)
    if (
      socket === undefined ||
      id < 0 ||
      !socket.send(inFlight.octets(slot), inFlight.offset(slot), inFlight.length(slot), id)
    ) {
      this.counters.unsendable++
      return false
    }
    this.add(wait, socket.number, id, now)
    if (socket.overTcp) this.counters.sentTcp++
    else this.counters.sentUdp++
    return true
  }

  /** Sends a probe, for whose answer no query waits. Returns false if it cannot be sent. */
  probe(socket: UpstreamSocket | undefined, octets: Uint8Array): boolean {
    const id = socket === undefined ? -1 : this.#freeId(socket.number)
    if (socket === undefined || id < 0) return false
    if (!socket.send(octets, 0, octets.length, id)) return false
    this.#late.expect(socket.number, id, this.#clock.now())
    return true
  }

  /** Handles an answer that no query waits for. Returns when its message was sent, or a negative number if none was expected. */
  takeLate(socket: number, id: number): number {
    return this.#late.take(socket, id, this.#clock.now())
  }

  /** Ends a wait. `mayAnswer`: the answer can still arrive, and is then a late answer. */
  end(wait: number, mayAnswer: boolean): void {
    const socket = this.#sockets[wait]!
    if (mayAnswer) this.#late.expect(socket, this.#ids[wait]!, this.#since[wait]!)
    this.remove(wait)
    if (this.countOf(socket) === 0) this.#numbers.get(socket)?.drained()
  }

  /** Begins a wait. The socket must have no wait with this id. */
  add(wait: number, socket: number, id: number, now: number): void {
    invariant(!this.isActive(wait), 'an attempt waits once')
    this.#active[wait] = 1
    this.#sockets[wait] = socket
    this.#ids[wait] = id
    this.#since[wait] = now
    this.#buckets.addFirst(this.#bucket(socket, id), wait)
    this.#bySocket.addFirst(socket, wait)
    this.#countBySocket[socket] = this.countOf(socket) + 1
  }

  /** Removes an active wait. */
  remove(wait: number): void {
    invariant(this.isActive(wait), 'only an active wait ends')
    const socket = this.#sockets[wait]!
    this.#active[wait] = 0
    this.#buckets.remove(this.#bucket(socket, this.#ids[wait]!), wait)
    this.#bySocket.remove(socket, wait)
    this.#countBySocket[socket] = this.countOf(socket) - 1
  }

  /**
   * Handles a reply with an unknown id. If it has the question of a wait on its socket, it can be an attacker's guess [A4]. Calls
   * `repeat` with each such wait, until a call returns true. Only the newest COMPARED_MAX waits of the socket are checked, and their
   * hashes are compared first. So a message of a flood costs one parse and a short loop.
   */
  repeatGuessed(socket: number, message: MessageView, repeat: (wait: number) => boolean): void {
    const { octets, offset, length } = message
    if (length < HEADER_OCTETS) return
    const end = offset + length
    const behind = readName(octets, offset, end, offset + HEADER_OCTETS, this.#name)
    if (behind < 0 || behind + 4 > end) return
    const nameHash = hashOctets(this.#name, 0, nameLength(this.#name))
    const hash = hashQuestion(nameHash, u16(octets, behind), u16(octets, behind + 2))
    let wait = this.#bySocket.first(socket)
    for (let i = 0; i < COMPARED_MAX && wait !== NO_ROW; i++, wait = this.#bySocket.after(wait)) {
      const slot = this.slotOf(wait)
      if (this.#inFlight.questionHashes[slot] !== hash) continue
      this.#view.read(this.#inFlight, slot)
      if (questionEquals(message, this.#view) && repeat(wait)) return
    }
  }

  /** Returns a random id that no wait of the socket has, or -1. */
  #freeId(socket: number): number {
    for (let i = 0; i < ID_TRIES; i++) {
      const id = this.#random.uint16()
      if (this.find(socket, id) < 0) return id
    }
    return -1
  }

  #bucket(socket: number, id: number): number {
    return (Math.imul(socket + 1, MIX) ^ id) & this.#mask
  }
}

/** The number of late answers that can be expected; a power of two. It is the 1,000 ended attempts per second times 8 s. */
const LATE_SIZE = 8192
const NEVER = -1

/**
 * LateAnswers remembers the messages whose answers can still arrive although no query waits: attempts that a faster answer or the
 * deadline ended, and probes. A late answer shows only that a server works and how long it takes. No client gets it, and namegate
 * does not learn from it. An answer is late for `lifetime` milliseconds after its message was sent. After that, a message with its id
 * can be a guess, and its age would make the server look so slow that no query is asked again in time [A1]. The table has one place
 * per hash of (socket, id), so a newer message can overwrite an older one. Then a server looks slow or silent a little longer.
 */
export class LateAnswers {
  readonly #keys = new Uint32Array(LATE_SIZE)
  readonly #sentAt = new Float64Array(LATE_SIZE).fill(NEVER)
  readonly #lifetime: number

  constructor(lifetime: number) {
    this.#lifetime = lifetime
  }

  /** Remembers that an answer with this id can arrive on this socket. `sentAt`: when the message was sent, in the clock's milliseconds. */
  expect(socket: number, id: number, sentAt: number): void {
    const at = latePlace(socket, id)
    this.#keys[at] = lateKey(socket, id)
    this.#sentAt[at] = sentAt
  }

  /** Handles an answer at `now`. Returns when its message was sent, or a negative number if no answer was expected. */
  take(socket: number, id: number, now: number): number {
    const at = latePlace(socket, id)
    if (this.#keys[at] !== lateKey(socket, id)) return NEVER
    const sentAt = this.#sentAt[at]!
    this.#sentAt[at] = NEVER
    return now - sentAt > this.#lifetime ? NEVER : sentAt
  }
}

/** Returns one number for a socket number and an id, which have 16 bits each. */
function lateKey(socket: number, id: number): number {
  return ((socket << 16) | id) >>> 0
}

function latePlace(socket: number, id: number): number {
  return (Math.imul(socket + 1, MIX) ^ id) & (LATE_SIZE - 1)
}
