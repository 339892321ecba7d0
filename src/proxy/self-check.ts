// Queries of our own that ask whether the whole way works: they come in by a listener, are admitted by the pipeline,
// and are answered when the datapath has confirmed a commit that was made for them. It writes an entry that no packet
// can meet, and takes it away again. No server is asked, so an outage of servers is no fault of ours.
//
// Which queries these are only we know: the name has 128 random bits. Everybody else costs one comparison.

import { formatAddress, type Family } from '../core/ip.ts'
import type { Committer } from '../datapath/committer.ts'
import { PrefixBatch } from '../datapath/prefix-batch.ts'
import type { Changes } from '../datapath/entries.ts'
import { LOCAL } from '../dns/codes.ts'
import { QueryView, type HashedQuestion } from '../dns/query.ts'
import { HEADER_OCTETS, u16 } from '../dns/wire.ts'
import { worldOf } from '../identity/reserved.ts'
import { MessageBatch } from './messages/batch.ts'
import { MessageView } from './messages/message-view.ts'
import { copyClient } from './messages/client-columns.ts'
import type { RandomSource } from './random.ts'
import type { Responder } from './server/responder.ts'
import { DatagramSocket } from './sockets/datagram-socket.ts'

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
  readonly #options: SelfCheckOptions
  readonly #view = new QueryView()
  readonly #message = new MessageView()
  readonly #hash: number
  readonly #waiting = new MessageBatch({ capacity: WAITING_MAX })
  /** The revision that has the commit of those that wait; 0: it is not made yet. */
  #needed = 0

  constructor(options: SelfCheckOptions) {
    this.#options = options
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
    this.#waiting.addTcp(0, 4, nobody, 0, batch.view(i, this.#message))
    copyClient(batch, i, this.#waiting, row)
    if (row > 0) return
    this.#needed = 0
    this.#options.committer.commitExtra(() => this.#write())
    this.#look()
  }

  #write(): Changes {
    this.#needed = this.#options.committer.revision + 1
    return changesOfNothing()
  }

  /** Answers when the commit was confirmed. Readiness reports what was refused of it; the way works all the same. */
  #look(): void {
    const batch = this.#waiting
    if (
      batch.count === 0 ||
      this.#needed === 0 ||
      this.#options.committer.revision < this.#needed
    ) {
      return
    }
    for (let i = 0; i < batch.count; i++) {
      this.#view.read(batch.octets(i), batch.offset(i), batch.length(i))
      this.counters.answered++
      this.#options.responder.refuse(batch, i, this.#view, LOCAL.alive)
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

/** `<32 hexadecimal digits>.namegate.invalid` in wire form (RFC 6761 6.4: no real name is like it). */
function makeName(random: RandomSource): Uint8Array {
  const token = new Uint8Array(TOKEN_OCTETS)
  random.fill(token)
  const label = [...token].flatMap((octet) => [
    HEX.charCodeAt(octet >> 4),
    HEX.charCodeAt(octet & 15),
  ])
  return Uint8Array.of(label.length, ...label, ...SUFFIX)
}

/** A listener as it is reached from this host: an address that is all zero means every one. */
export interface OwnListener {
  readonly family: Family
  readonly octets: Uint8Array
  readonly port: number
}

const NOERROR = 0
const RCODE_BITS = 15
const QR = 0x80

/**
 * Sends the queries of the self-check to the UDP listeners of this process, each from a socket of this host, and receives
 * the answers. A round is over when every listener has answered; a new round gives up the one before.
 */
export class SelfQuery {
  readonly #check: Pick<SelfCheck, 'query'>
  readonly #listeners: () => readonly OwnListener[]
  readonly #sockets: (DatagramSocket | undefined)[] = []
  #round = 0
  /** Listeners that have not answered in this round. */
  #open = new Set<number>()
  #answered: () => void = () => undefined

  constructor(check: Pick<SelfCheck, 'query'>, listeners: () => readonly OwnListener[]) {
    this.#check = check
    this.#listeners = listeners
  }

  /** Begins a round; `answered` is called once when all listeners have answered it. */
  ask(answered: () => void): void {
    const listeners = this.#listeners()
    this.#round = (this.#round + 1) & 0xffff
    this.#answered = answered
    this.#open = new Set(listeners.keys())
    for (const [i, { family, octets, port }] of listeners.entries()) {
      const socket = (this.#sockets[i] ??= this.#openSocket(i, family))
      const { query } = this.#check
      socket?.sendTo(MessageView.of(query), this.#round, port, reachable(family, octets))
    }
  }

  stop(): void {
    for (const socket of this.#sockets.splice(0)) socket?.close()
  }

  #openSocket(i: number, family: Family): DatagramSocket | undefined {
    const socket = new DatagramSocket({
      family,
      onMessage: (message) => this.#received(i, message),
      // An answer that does not come is fault enough.
      onError: () => undefined,
    })
    if (socket.bind(LOOPBACK[family], 0) === undefined) {
      socket.unref()
      return socket
    }
    socket.close()
    return undefined
  }

  #received(i: number, message: Uint8Array): void {
    if (message.length < HEADER_OCTETS || u16(message, 0) !== this.#round) return
    if ((message[2]! & QR) === 0 || (message[3]! & RCODE_BITS) !== NOERROR) return
    if (!this.#open.delete(i) || this.#open.size > 0) return
    this.#answered()
  }
}

const LOOPBACK: Readonly<Record<Family, string>> = { 4: '127.0.0.1', 6: '::1' }

function reachable(family: Family, octets: Uint8Array): string {
  return octets.some((octet) => octet !== 0) ? formatAddress(family, octets) : LOOPBACK[family]
}
