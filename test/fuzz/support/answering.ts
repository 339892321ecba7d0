// The server's side: looks at every query that the daemon forwards, and answers it, mostly with spoiled messages, until it has sent a message
// that the daemon must accept. After a mismatch over UDP the server often waits for the query to come again over TCP. On another socket it
// sends only the same message again, so it always knows which one counts.

import { readQuery, type ReadQuery } from '../../support/models/query-oracle.ts'
import { mutateOctets } from '../../support/models/mutate.ts'
import { Random } from '../../support/models/random.ts'
import { changeField, mkAnswer, mkStray } from './cases.ts'
import {
  idOf,
  transportOf,
  type Accepted,
  type Channel,
  type Ledger,
  type Pending,
} from './ledger.ts'
import type { Server53 } from './sockets.ts'
import type { Tally } from './tally.ts'

type Kind = 'field' | 'spoiled' | 'plain' | 'stray'

/** The most spoiled messages for one query before it gets a good one. */
const SPOILED_MAX = 6
/** After one of so many answers over TCP, the connection ends. */
const HANG_UP_EVERY = 500

export interface AnsweringOptions {
  readonly seed: number
  readonly server: Server53
  readonly ledger: Ledger
  readonly tally: Tally
  readonly onFault: (fault: string, pending: Pending | undefined, octets: Uint8Array) => void
  /** Called for every packet to the daemon, for the report of a crash. */
  readonly onSend: (what: string, octets: Uint8Array) => void
}

export class Answering {
  readonly #to: AnsweringOptions
  /** For choices outside of cases. */
  readonly #random: Random

  constructor(options: AnsweringOptions) {
    this.#to = options
    this.#random = new Random(options.seed)
    options.server.onQuery = (channel, octets) => this.#take(channel, octets)
    options.server.onHungUp = () => options.ledger.hangUps++
  }

  #take(channel: Channel, octets: Uint8Array): void {
    const { ledger, tally, onFault } = this.#to
    const read = readQuery(octets)
    const repeated = channel.overTcp ? ledger.repeated(read.labels) : undefined
    const pending = ledger.byName(read.labels)
    if (read.verdict !== 'ok') onFault('forwarded an unsound query', pending, octets)
    if (pending === undefined) {
      if (repeated !== undefined) tally.repeats++
      return this.#late(channel, read, idOf(octets))
    }
    if (Buffer.compare(octets.subarray(2), pending.query.subarray(2)) !== 0) {
      onFault('the forwarded query is not the asked one', pending, octets)
    }
    if (channel.overTcp && !pending.client.overTcp) tally.repeats++
    ledger.asked(pending, channel, idOf(octets))
    this.#answer(pending, channel, idOf(octets))
  }

  /** A query whose client already has its answer: messages for it must change nothing. */
  #late(channel: Channel, read: ReadQuery, id: number): void {
    // The daemon's own query, by which it looks for a sign of life.
    if (read.labels.length === 0) return
    if (this.#random.oneIn(2)) this.#stray(channel, mkStray(this.#random, read, id))
  }

  #answer(pending: Pending, channel: Channel, id: number): void {
    const { random, read } = pending
    if (pending.silent) return
    if (pending.accepted !== undefined) return this.#again(pending.accepted, pending, channel, id)
    if (random.oneIn(12)) this.#stray(channel, mkStray(random, read, id))
    const first = !channel.overTcp && pending.waits.length === 1
    while (pending.accepted === undefined) {
      this.#sendOne(pending, channel, id)
      // The query comes over TCP only once. A later attempt over UDP must find its answer here.
      if (first && pending.owesRepeat && isOpen(pending) && random.oneIn(2)) return
    }
    while (random.oneIn(8)) this.#stray(channel, mkStray(random, read, id))
    if (random.oneIn(40)) this.#strayFromElsewhere(pending, channel, id)
    if (channel.overTcp && random.oneIn(HANG_UP_EVERY)) this.#hangUp()
  }

  /** The daemon drops a good answer from a port at which it counted many guesses, and asks again. It gets the same answer. */
  #again(accepted: Accepted, pending: Pending, channel: Channel, id: number): void {
    if (channel.overTcp) pending.accepted = { ...accepted, again: true }
    const same = Uint8Array.from(accepted.octets)
    same.set([id >> 8, id & 0xff])
    this.#to.onSend(`the same answer over ${transportOf(channel)}`, same)
    channel.send(same)
  }

  #sendOne(pending: Pending, channel: Channel, id: number): void {
    const { random, read } = pending
    const laid = mkAnswer(random, read, id)
    if (pending.sent++ >= SPOILED_MAX || random.oneIn(30)) {
      this.#send(channel, laid.octets, 'plain')
    } else if (random.oneIn(7)) {
      this.#send(channel, mutateOctets(random, laid.octets), 'spoiled')
    } else {
      this.#send(channel, changeField(random, laid), 'field')
    }
  }

  /** Sends a good answer from a port that was not asked. The kernel must keep it from the daemon. */
  #strayFromElsewhere({ random, read }: Pending, channel: Channel, id: number): void {
    const { server, tally, onSend } = this.#to
    if (channel.overTcp) return
    const { octets } = mkAnswer(random, read, id)
    tally.packets.stray++
    onSend('from elsewhere', octets)
    server.sendFromElsewhere(channel, octets)
  }

  #stray(channel: Channel, octets: Uint8Array): void {
    this.#send(channel, octets, 'stray')
  }

  #send(channel: Channel, octets: Uint8Array, kind: Kind): void {
    const { ledger, tally, onSend } = this.#to
    const match = ledger.match(channel, octets)
    const live = match.pending !== undefined && match.pending.accepted === undefined
    if (kind === 'field' || kind === 'spoiled') {
      tally.packets[kind]++
      if (match.header) tally.passed.header++
      if (match.question) tally.passed.question++
    } else if (kind === 'plain' || (live && match.question)) {
      tally.plain.answers++
    } else {
      tally.packets.stray++
    }
    if (channel.overTcp) tally.overTcp.answers++
    ledger.note(match, channel, octets, kind === 'field' || kind === 'spoiled')
    onSend(`${kind} answer over ${transportOf(channel)}`, octets)
    channel.send(octets)
  }

  #hangUp(): void {
    if (!this.#to.server.hangUp()) return
    this.#to.ledger.hangUps++
    this.#to.tally.hangUps++
  }
}

function isOpen({ accepted }: Pending): boolean {
  return accepted === undefined
}
