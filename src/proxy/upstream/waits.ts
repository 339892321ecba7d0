// What each upstream socket waits for: (socket, id) -> the slot in flight. A query leaves on a socket under a random
// id that is free there, and waits for that id until its answer comes or the wait ends. A slot can wait on several
// sockets at once, one per attempt (an earlier server may still answer while the next is asked), so a wait is
// numbered slot * width + attempt. Ids are unique per socket (RFC 7766 6.2.1), so a reply finds at most one wait.
// Add, find and remove are O(1); nothing is allocated per query.

import type { Clock } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import { nameLength } from '../../core/name.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'
import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'
import { questionEquals } from '../../dns/match.ts'
import { HEADER_OCTETS, readName, u16 } from '../../dns/wire.ts'
import { hashQuestion, type InFlightTable } from '../messages/in-flight.ts'
import { SlotView } from '../messages/slot-view.ts'
import type { RandomPool } from '../random.ts'
import { UPSTREAM_SOCKETS_MAX, type SocketNumbers, type UpstreamSocket } from './upstream-socket.ts'

const MIX = 0x9e3779b1
/** Draws of an id that isn't in flight on the socket: with half of all ids in flight 1 query in 2^32 fails. */
const ID_TRIES = 32
/** Waits of a socket that are compared with a guess, newest first. */
const GUESSES_MAX = 256

export interface WaitsParts {
  readonly clock: Clock
  readonly random: RandomPool
  readonly inFlight: InFlightTable
  readonly numbers: SocketNumbers
  /** Waits that one slot can have. */
  readonly width: number
}

export class Waits {
  readonly counters = {
    /** Queries sent, all attempts and repetitions. */
    sentUdp: 0,
    sentTcp: 0,
    /** Attempts that found no socket or no free id, or whose send was refused. */
    unsendable: 0,
  }
  readonly width: number
  /** Answers to waits that ended without one, and to probes. */
  readonly late = new LateAnswers()
  readonly #clock: Clock
  readonly #random: RandomPool
  readonly #inFlight: InFlightTable
  readonly #numbers: SocketNumbers
  readonly #active: Uint8Array
  readonly #sockets: Uint16Array
  readonly #ids: Uint16Array
  /** When each wait began, in the clock's milliseconds. */
  readonly #since: Float64Array
  /** Waits in the same hash bucket. */
  readonly #buckets: LinkedRows
  readonly #mask: number
  /** Waits on the same socket, newest first. */
  readonly #bySocket: LinkedRows
  readonly #countBySocket: number[] = []
  readonly #view = new SlotView()
  readonly #name = new Uint8Array(255)

  constructor({ clock, random, inFlight, numbers, width }: WaitsParts) {
    const { capacity } = inFlight
    const waits = capacity * width
    this.width = width
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

  /** The wait of a slot's attempt 0..width-1. */
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

  /** The socket that a wait is on. */
  socketOf(wait: number): UpstreamSocket | undefined {
    return this.#numbers.get(this.#sockets[wait]!)
  }

  /** The active wait of that socket and id, or -1. */
  find(socket: number, id: number): number {
    let wait = this.#buckets.first(this.#bucket(socket, id))
    while (wait !== NO_ROW && (this.#ids[wait] !== id || this.#sockets[wait] !== socket)) {
      wait = this.#buckets.after(wait)
    }
    return wait
  }

  /** The newest wait on a socket, or -1. */
  newestOf(socket: number): number {
    return this.#bySocket.first(socket)
  }

  /** The wait on the same socket that began before this one, or -1. */
  olderThan(wait: number): number {
    return this.#bySocket.after(wait)
  }

  /** How many waits a socket has. */
  countOf(socket: number): number {
    return this.#countBySocket[socket] ?? 0
  }

  /** Sends the query of a slot and waits for its answer; false when the query can't be sent. */
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

  /** Sends a message for whose answer no query waits; false when it can't be sent. */
  probe(socket: UpstreamSocket | undefined, octets: Uint8Array): boolean {
    const id = socket === undefined ? -1 : this.#freeId(socket.number)
    if (socket === undefined || id < 0) return false
    if (!socket.send(octets, 0, octets.length, id)) return false
    this.late.expect(socket.number, id, this.#clock.now())
    return true
  }

  /** Ends a wait. `mayAnswer`: its answer may still come, and is a late one then. */
  end(wait: number, mayAnswer: boolean): void {
    const socket = this.#sockets[wait]!
    if (mayAnswer) this.late.expect(socket, this.#ids[wait]!, this.#since[wait]!)
    this.remove(wait)
    if (this.countOf(socket) === 0) this.#numbers.get(socket)?.drained()
  }

  /** Starts a wait. The socket must not wait for that id already. */
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
   * A reply with an unknown id that names a question in flight on its socket counts as a guess at that question [A4].
   * Calls `repeat` with each wait that the message guesses at, until one call returns true. Looks at the newest
   * waits of the socket only, and compares hashes first: a flood costs a parse and a short walk.
   */
  repeatGuessed(
    socket: number,
    octets: Uint8Array,
    offset: number,
    length: number,
    repeat: (wait: number) => boolean,
  ): void {
    if (length < HEADER_OCTETS) return
    const end = offset + length
    const behind = readName(octets, offset, end, offset + HEADER_OCTETS, this.#name)
    if (behind < 0 || behind + 4 > end) return
    const nameHash = hashOctets(this.#name, 0, nameLength(this.#name))
    const hash = hashQuestion(nameHash, u16(octets, behind), u16(octets, behind + 2))
    let wait = this.newestOf(socket)
    for (let i = 0; i < GUESSES_MAX && wait !== NO_ROW; i++, wait = this.olderThan(wait)) {
      const slot = this.slotOf(wait)
      if (this.#inFlight.questionHashes[slot] !== hash) continue
      this.#view.read(this.#inFlight, slot)
      if (questionEquals(octets, offset, length, this.#view) && repeat(wait)) return
    }
  }

  /** A random id that the socket doesn't wait for, or -1. */
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

/** Late answers expected at once; a power of two. Twice what 1,000 ended attempts a second leave open in 4 s. */
const LATE_SIZE = 8192
const NEVER = -1

/**
 * Answers that may still come though no query waits for them: of attempts that another one overtook or that ran out of
 * time, and of probes. A late answer shows that a server lives and how long it takes, nothing else: no client
 * sees it and nothing is learned from it. A direct-mapped table of (socket, id): a newer entry replaces an older one,
 * and a lost entry makes a server look slow or silent a little longer.
 */
export class LateAnswers {
  readonly #keys = new Uint32Array(LATE_SIZE)
  readonly #sentAt = new Float64Array(LATE_SIZE).fill(NEVER)

  /** An answer with that id may come on that socket to what was sent at `sentAt` (the clock's ms). */
  expect(socket: number, id: number, sentAt: number): void {
    const at = latePlace(socket, id)
    this.#keys[at] = lateKey(socket, id)
    this.#sentAt[at] = sentAt
  }

  /** When the question was sent whose answer has come now; negative when none was expected. */
  take(socket: number, id: number): number {
    const at = latePlace(socket, id)
    if (this.#keys[at] !== lateKey(socket, id)) return NEVER
    const sentAt = this.#sentAt[at]!
    this.#sentAt[at] = NEVER
    return sentAt
  }
}

/** Socket numbers and ids have 16 bits each. */
function lateKey(socket: number, id: number): number {
  return ((socket << 16) | id) >>> 0
}

function latePlace(socket: number, id: number): number {
  return (Math.imul(socket + 1, MIX) ^ id) & (LATE_SIZE - 1)
}
