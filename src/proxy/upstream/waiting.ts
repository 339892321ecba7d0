// One attempt: a query leaves on a socket under a random id that is free there, and waits for that id; or the wait
// ends, and an answer that comes still is a late one. A probe waits for nothing: its answer is late from the start.

import type { Clock } from '../../core/clock.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import type { LateAnswers } from './late-answers.ts'
import type { RandomPool } from '../random.ts'
import type { SocketNumbers, UpstreamSocket } from './upstream-socket.ts'
import type { WaitTable } from './wait-table.ts'

/** Draws of an id that isn't in flight on the socket: with half of all ids in flight 1 query in 2^32 fails. */
const ID_TRIES = 32

export interface WaitingOptions {
  readonly clock: Clock
  readonly random: RandomPool
  readonly inFlight: InFlightTable
  readonly waits: WaitTable
  readonly numbers: SocketNumbers
  readonly late: LateAnswers
}

export class Waiting {
  readonly counters = {
    /** Queries sent, all attempts and repetitions. */
    sentUdp: 0,
    sentTcp: 0,
    /** Attempts that found no socket or no free id, or whose send was refused. */
    unsendable: 0,
  }
  readonly #options: WaitingOptions

  constructor(options: WaitingOptions) {
    this.#options = options
  }

  /** Sends the query of a slot and waits for its answer; false when that's not possible. */
  begin(slot: number, wait: number, socket: UpstreamSocket | undefined, now: number): boolean {
    const { waits, inFlight } = this.#options
    const id = socket === undefined ? -1 : this.#freeId(socket.number)
    if (socket === undefined || id < 0) {
      this.counters.unsendable++
      return false
    }
    if (!socket.send(inFlight.octets(slot), inFlight.offset(slot), inFlight.length(slot), id)) {
      this.counters.unsendable++
      return false
    }
    waits.add(wait, socket.number, id, now)
    if (socket.overTcp) this.counters.sentTcp++
    else this.counters.sentUdp++
    return true
  }

  /** Sends a message for whose answer no query waits; false when it can't be sent. */
  probe(socket: UpstreamSocket | undefined, octets: Uint8Array): boolean {
    const id = socket === undefined ? -1 : this.#freeId(socket.number)
    if (socket === undefined || id < 0) return false
    if (!socket.send(octets, 0, octets.length, id)) return false
    this.#options.late.expect(socket.number, id, this.#options.clock.now())
    return true
  }

  /** Ends a wait whose answer came, or will never come. */
  end(wait: number): void {
    const { waits, numbers } = this.#options
    const socket = waits.socketOf(wait)
    waits.remove(wait)
    if (waits.countOf(socket) === 0) numbers.get(socket)?.drained()
  }

  /** Ends a wait whose answer may still come. */
  abandon(wait: number): void {
    const { waits, late } = this.#options
    late.expect(waits.socketOf(wait), waits.idOf(wait), waits.sinceOf(wait))
    this.end(wait)
  }

  /** The socket that a wait is on. */
  socketOf(wait: number): UpstreamSocket | undefined {
    return this.#options.numbers.get(this.#options.waits.socketOf(wait))
  }

  /** A random id that the socket doesn't wait for, or -1. */
  #freeId(socket: number): number {
    const { waits, random } = this.#options
    for (let i = 0; i < ID_TRIES; i++) {
      const id = random.uint16()
      if (waits.find(socket, id) < 0) return id
    }
    return -1
  }
}
