// The self-check tests the proxy and the datapath with queries of namegate itself. SelfQuery sends a query to each listener.
// The pipeline admits it, and SelfCheck makes a commit for it. The commit writes an entry that no packet can match, and removes
// the entry again. When the datapath has confirmed the commit, SelfCheck answers the query. SelfCheck asks no server, so a
// failure of servers does not fail the check.
//
// The name of these queries has 128 random bits, so only this process knows it. For every other query the check costs one comparison.

import { formatAddress, type Family } from '../core/ip.ts'
import type { Committer } from '../datapath/committer.ts'
import { PrefixBatch } from '../datapath/prefix-batch.ts'
import type { Changes } from '../datapath/entries.ts'
import { LOCAL } from '../dns/codes.ts'
import { QueryView, type HashedQuestion } from '../dns/query.ts'
import { HEADER_OCTETS, u16 } from '../dns/wire.ts'
import { worldOf } from '../identity/reserved.ts'
import { MessageBatch } from './messages/batch.ts'
import { MessageView } from '../dns/message-view.ts'
import { copyClient } from './messages/client-columns.ts'
import type { RandomSource } from '../core/random.ts'
import type { Responder } from './server/responder.ts'
import type { ConnectedSocket } from './sockets/connected-socket.ts'
import type { Datagrams } from './sockets/datagrams.ts'

/** The largest number of checks that can wait for the datapath. Further checks get no answer. */
const WAITING_MAX = 16
/** A scope that no endpoint has, so no packet matches an entry of this scope. */
const NOBODYS_SCOPE = 0xffff_ffff
/** 192.0.0.8 (RFC 7600), an address that no host has. */
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
/** The header: recursion desired, one question. */
const HEAD = Uint8Array.of(0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
/** The end of the question: type A, class IN. */
const TAIL = Uint8Array.of(0, 1, 0, 1)

export interface SelfCheckOptions {
  readonly random: RandomSource
  readonly committer: Pick<Committer, 'commitExtra' | 'onEnd' | 'revision'>
  readonly responder: Pick<Responder, 'refuse'>
}

export class SelfCheck {
  readonly counters = { asked: 0, answered: 0 }
  /** The query. Its first two octets are the id. */
  readonly query: Uint8Array
  readonly #options: SelfCheckOptions
  readonly #view = new QueryView()
  readonly #message = new MessageView()
  readonly #hash: number
  readonly #waiting = new MessageBatch({ capacity: WAITING_MAX })
  /** The revision that contains the commit for the waiting queries; 0: the commit has not begun. */
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

  /** Takes query `i` of a batch, for which `isOurs` returned true. */
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

  /** Answers the waiting queries if their commit is confirmed. A refused entry does not fail the check; readiness reports it. */
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
      const { octets, offset, length } = batch.view(i, this.#message)
      this.#view.read(octets, offset, length)
      this.counters.answered++
      this.#options.responder.refuse(batch, i, this.#view, LOCAL.alive)
    }
    batch.clear()
  }
}

/** Returns changes that write an entry which no packet can match, and remove it again. They are real writes without an effect. */
export function changesOfNothing(): Changes {
  const entry = new PrefixBatch(1)
  const noHost = { family: 4, octets: NO_HOST, length: 32 } as const
  entry.add(noHost, worldOf(4), worldOf(4), NOBODYS_SCOPE)
  return {
    policyUpserts: [],
    prefixUpserts: entry,
    endpointUpserts: [],
    endpointRemovals: [],
    prefixRemovals: entry,
    policyRemovals: [],
  }
}

/** Returns `<32 hexadecimal digits>.namegate.invalid` in wire format. No real name ends in `invalid` (RFC 6761 6.4). */
function makeName(random: RandomSource): Uint8Array {
  const token = new Uint8Array(TOKEN_OCTETS)
  random.fill(token)
  const label = [...token].flatMap((octet) => [
    HEX.charCodeAt(octet >> 4),
    HEX.charCodeAt(octet & 15),
  ])
  return Uint8Array.of(label.length, ...label, ...SUFFIX)
}

/** A UDP listener of this process. An address of zeros means that it listens on every address. */
export interface OwnListener {
  readonly family: Family
  readonly octets: Uint8Array
  readonly port: number
}

const NOERROR = 0
const RCODE_BITS = 15
const QR = 0x80

/**
 * SelfQuery sends the query of the self-check to each UDP listener of this process, from one socket per listener. It receives the
 * answers. A round ends when every listener has answered. A new round ends the round before.
 */
export class SelfQuery {
  readonly #check: Pick<SelfCheck, 'query'>
  readonly #listeners: () => readonly OwnListener[]
  readonly #datagrams: Pick<Datagrams, 'connect'>
  readonly #sockets: (ConnectedSocket | undefined)[] = []
  #round = 0
  /** Indexes of the listeners that have not answered in this round. */
  #open = new Set<number>()
  #answered: () => void = () => undefined

  constructor(
    check: Pick<SelfCheck, 'query'>,
    datagrams: Pick<Datagrams, 'connect'>,
    listeners: () => readonly OwnListener[],
  ) {
    this.#check = check
    this.#datagrams = datagrams
    this.#listeners = listeners
  }

  /** Begins a round, and calls `answered` once when all listeners have answered. */
  ask(answered: () => void): void {
    const listeners = this.#listeners()
    this.#round = (this.#round + 1) & 0xffff
    this.#answered = answered
    this.#open = new Set(listeners.keys())
    const { query } = this.#check
    for (const [i, listener] of listeners.entries()) {
      const socket = (this.#sockets[i] ??= this.#openSocket(i, listener))
      socket?.send(query, 0, query.length, this.#round)
    }
  }

  stop(): void {
    for (const socket of this.#sockets.splice(0)) socket?.close()
  }

  #openSocket(i: number, { family, octets, port }: OwnListener): ConnectedSocket | undefined {
    const server = { family, address: reachable(family, octets), port }
    const socket = this.#datagrams.connect(server, 0, {
      received: (source, offset, length) => this.#received(i, source, offset, length),
      // An error needs no handling: the round never ends without the answer, and that is the sign of a failure.
      fault: () => undefined,
      dropped: () => undefined,
    })
    return typeof socket === 'string' ? undefined : socket
  }

  #received(i: number, source: Uint8Array, offset: number, length: number): void {
    if (length < HEADER_OCTETS || u16(source, offset) !== this.#round) return
    if ((source[offset + 2]! & QR) === 0 || (source[offset + 3]! & RCODE_BITS) !== NOERROR) return
    if (!this.#open.delete(i) || this.#open.size > 0) return
    this.#answered()
  }
}

const LOOPBACK: Readonly<Record<Family, string>> = { 4: '127.0.0.1', 6: '::1' }

function reachable(family: Family, octets: Uint8Array): string {
  return octets.some((octet) => octet !== 0) ? formatAddress(family, octets) : LOOPBACK[family]
}
