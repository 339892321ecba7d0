// Queries of our own that ask whether the whole way works: they come in by a listener, are admitted by the pipeline,
// and are answered when the datapath has confirmed a commit that was made for them. It writes an entry that no packet
// can meet, and takes it away again. No server is asked, so an outage of servers is no fault of ours.
//
// Which queries these are only we know: the name has 128 random bits. Everybody else costs one comparison.

import type { Committer } from '../datapath/committer.ts'
import { PrefixBatch } from '../datapath/prefix-batch.ts'
import type { Changes } from '../datapath/datapath.ts'
import { LOCAL } from '../dns/codes.ts'
import { QueryView, type HashedQuestion } from '../dns/query.ts'
import { worldOf } from '../identity/reserved.ts'
import { MessageBatch } from './messages/batch.ts'
import { copyClient } from './messages/client-columns.ts'
import type { RandomSource } from './random.ts'
import type { Responder } from './server/responder.ts'

/** Checks that may wait for the datapath. */
const WAITING_MAX = 16
/** No endpoint has it, so no packet is judged by an entry of its scope. */
const NOBODYS_SCOPE = 0xffff_ffff
/** 192.0.0.8 (RFC 7600): of no host. */
const NO_HOST = Uint8Array.of(192, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
const SUFFIX = Uint8Array.of(
  8,
  ...new TextEncoder().encode('namegate'),
  7,
  ...new TextEncoder().encode('invalid'),
  0,
)
const TOKEN_OCTETS = 16
const HEX = '0123456789abcdef'
/** Header flags: recursion desired; one question; type A, class IN. */
const HEAD = Uint8Array.of(0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
const TAIL = Uint8Array.of(0, 1, 0, 1)

export interface SelfCheckOptions {
  readonly random: RandomSource
  readonly committer: Pick<Committer, 'commitExtra' | 'onEnd' | 'revision'>
  readonly responder: Pick<Responder, 'refuse'>
}

export class SelfCheck {
  readonly counters = { asked: 0, answered: 0 }
  /** The query, whose first two octets are the id. */
  readonly query: Uint8Array
  readonly #to: SelfCheckOptions
  readonly #view = new QueryView()
  readonly #hash: number
  readonly #waiting = new MessageBatch({ capacity: WAITING_MAX })
  /** The revision that has the commit of those that wait; 0: it is not made yet. */
  #needed = 0

  constructor(options: SelfCheckOptions) {
    this.#to = options
    this.query = Uint8Array.of(...HEAD, ...makeName(options.random), ...TAIL)
    this.#view.read(this.query, 0, this.query.length)
    this.#hash = this.#view.nameHash
    options.committer.onEnd(() => this.#look())
  }

  isOurs(question: HashedQuestion): boolean {
    if (question.nameHash !== this.#hash || question.qtype !== 1) return false
    const name = this.query
    for (let i = 0; i < question.nameLength; i++) {
      if (question.name[i] !== name[HEAD.length + i]) return false
    }
    return true
  }

  /** Takes entry `i` of a batch, a sound query of ours. */
  take(batch: MessageBatch, i: number): void {
    this.counters.asked++
    if (this.#waiting.full) return
    const row = this.#waiting.count
    const nobody = batch.addresses
    this.#waiting.addTcp(0, 4, nobody, 0, batch.octets(i), batch.offset(i), batch.length(i))
    copyClient(batch, i, this.#waiting, row)
    if (row > 0) return
    this.#needed = 0
    this.#to.committer.commitExtra(() => this.#write())
    this.#look()
  }

  #write(): Changes {
    this.#needed = this.#to.committer.revision + 1
    return changesOfNothing()
  }

  /** Answers when the commit was confirmed. What was refused of it is told by readiness: the way is there. */
  #look(): void {
    const batch = this.#waiting
    if (batch.count === 0 || this.#needed === 0 || this.#to.committer.revision < this.#needed) {
      return
    }
    for (let i = 0; i < batch.count; i++) {
      this.#view.read(batch.octets(i), batch.offset(i), batch.length(i))
      this.counters.answered++
      this.#to.responder.refuse(batch, i, this.#view, LOCAL.alive)
    }
    batch.clear()
  }
}

/** An entry that no packet can meet, made and taken away: real writes, and all is as it was. */
export function changesOfNothing(): Changes {
  const entry = new PrefixBatch(1)
  entry.add(4, NO_HOST, 0, 32, worldOf(4), worldOf(4), NOBODYS_SCOPE)
  return {
    policyUpserts: [],
    prefixUpserts: entry,
    endpointUpserts: [],
    endpointRemovals: [],
    prefixRemovals: entry,
    policyRemovals: [],
  }
}

/** `<32 hexadecimal digits>.namegate.invalid` in wire form (RFC 6761 6.4: nobody else has it). */
function makeName(random: RandomSource): Uint8Array {
  const token = new Uint8Array(TOKEN_OCTETS)
  random.fill(token)
  const label = [...token].flatMap((octet) => [
    HEX.charCodeAt(octet >> 4),
    HEX.charCodeAt(octet & 15),
  ])
  return Uint8Array.of(label.length, ...label, ...SUFFIX)
}
