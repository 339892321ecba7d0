// The server's side: every query that the daemon forwards is looked at and then answered, mostly with spoiled messages,
// until one was sent that must be accepted. After a mismatch over UDP the server often waits for the query to come
// again over TCP. No second acceptable message leaves on another socket, so which one counts is always known.

import { readQuery, type ReadQuery } from '../../support/models/query-oracle.ts'
import { mutateOctets } from '../../support/models/mutate.ts'
import { Random } from '../../support/models/random.ts'
import { changeField, mkAnswer, mkStray } from './cases.ts'
import { idOf, transportOf, type Channel, type Ledger, type Pending } from './ledger.ts'
import type { Server53 } from './sockets.ts'
import type { Tally } from './tally.ts'

type Kind = 'field' | 'spoiled' | 'plain' | 'stray'

/** Spoiled messages for one query, before it gets a good one. */
const SPOILED_MAX = 6
/** Of so many answers over TCP, one is followed by the connection's end. */
const HANG_UP_EVERY = 500

export interface AnsweringOptions {
  readonly seed: number
  readonly server: Server53
  readonly ledger: Ledger
  readonly tally: Tally
  readonly onFault: (fault: string, pending: Pending | undefined, octets: Uint8Array) => void
  /** Every packet on its way to the daemon, for the report of a crash. */
  readonly onSend: (what: string, octets: Uint8Array) => void
}

export class Answering {
  readonly #to: AnsweringOptions
  /** For what belongs to no case. */
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

  /** A query whose client has had its answer already: what is sent now must change nothing. */
  #late(channel: Channel, read: ReadQuery, id: number): void {
    // The daemon's own question for a sign of life.
    if (read.labels.length === 0) return
    if (this.#random.oneIn(2)) this.#stray(channel, mkStray(this.#random, read, id))
  }

  #answer(pending: Pending, channel: Channel, id: number): void {
    const { random, read } = pending
    if (pending.silent || pending.accepted !== undefined) return
    if (random.oneIn(12)) this.#stray(channel, mkStray(random, read, id))
    const first = !channel.overTcp && pending.waits.length === 1
    while (pending.accepted === undefined) {
      this.#sendOne(pending, channel, id)
      // It comes over TCP once only; a later attempt over UDP must find its answer here.
      if (first && pending.owesRepeat && isOpen(pending) && random.oneIn(2)) return
    }
    while (random.oneIn(8)) this.#stray(channel, mkStray(random, read, id))
    if (random.oneIn(40)) this.#strayFromElsewhere(pending, channel, id)
    if (channel.overTcp && random.oneIn(HANG_UP_EVERY)) this.#hangUp()
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

  /** A good answer from a port that was not asked: the kernel keeps it from the daemon. */
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
