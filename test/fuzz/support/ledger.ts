// The queries of clients until their answers, and the ids with which they are at the server. This tells, before a message is sent to the
// daemon, whether the daemon must accept it as an answer, and to which query.

import type { ReadQuery } from '../../support/models/query-oracle.ts'
import type { Random } from '../../support/models/random.ts'
import { hasAnswerHeader, isAnswer, type Fate } from './expected.ts'
import type { Who } from './world.ts'

/** A client's socket or connection. */
export interface Client {
  readonly who: Who
  readonly overTcp: boolean
  /** Its queries without a reply, by their id. */
  readonly waiting: Map<number, Pending>
  send(octets: Uint8Array): void
}

/** The daemon's socket or connection to the server. */
export interface Channel {
  readonly overTcp: boolean
  /** Queries on it that still wait, by the daemon's id. */
  readonly waits: Map<number, Pending>
  send(octets: Uint8Array): void
}

export interface Accepted {
  readonly octets: Uint8Array
  readonly overTcp: boolean
  readonly mutated: boolean
  /** True if the server also sent it over TCP. */
  readonly again?: boolean
}

/** A query that must get a reply. */
export interface Pending {
  readonly number: number
  readonly random: Random
  readonly query: Uint8Array
  readonly read: ReadQuery
  readonly client: Client
  readonly fate: Fate
  /** Number of ended connections before it was asked. */
  readonly hangUps: number
  /** The second of the daemon's clock when it was asked. */
  readonly tick: number
  /** Stays without an answer on purpose. */
  readonly silent: boolean
  readonly waits: { readonly channel: Channel; readonly id: number }[]
  /** Messages sent for it. */
  sent: number
  /** The server's events and actions, for the report of a difference: milliseconds since `begun`, and a text. */
  readonly history: string[]
  readonly begun: number
  accepted: Accepted | undefined
  /** A mismatch arrived over UDP, so the query must come once over TCP. */
  owesRepeat: boolean
}

export interface Match {
  /** The right id on the right socket, QR=1, opcode QUERY. */
  readonly header: boolean
  /** Whether it is the answer to a waiting query. */
  readonly question: boolean
  /** The query with its id. */
  readonly pending: Pending | undefined
}

export class Ledger {
  readonly #byName = new Map<string, Pending>()
  /** By name, oldest first: queries that must come over TCP, and since when. */
  readonly #owing = new Map<string, { readonly pending: Pending; readonly since: number }>()
  readonly #waiting = new Set<Pending>()
  /** The number of queries with a reply. */
  ended = 0
  /** Grows at the end of a connection, and when the daemon has noticed it. Queries between these moments can be lost. */
  hangUps = 0

  /** The number of queries without a reply. */
  get count(): number {
    return this.#waiting.size
  }

  get oldest(): Pending | undefined {
    for (const pending of this.#waiting) return pending
    return undefined
  }

  /** Whether a query for the name waits. Two would make it unclear which of them taught. */
  hasName(labels: readonly string[]): boolean {
    return this.#byName.has(JSON.stringify(labels))
  }

  byName(labels: readonly string[]): Pending | undefined {
    return this.#byName.get(JSON.stringify(labels))
  }

  /** A query that was due over TCP `ms` milliseconds ago and did not come. The end of a connection excuses it. */
  takeOwing(ms: number): Pending | undefined {
    for (const [key, { pending, since }] of this.#owing) {
      if (performance.now() - since < ms) return undefined
      this.#owing.delete(key)
      if (pending.hangUps === this.hangUps) return pending
    }
    return undefined
  }

  add(pending: Pending): void {
    this.#waiting.add(pending)
    pending.client.waiting.set(idOf(pending.query), pending)
    if (pending.fate.kind === 'forwarded') {
      this.#byName.set(JSON.stringify(pending.read.labels), pending)
    }
  }

  /** Removes a query whose client has its reply. */
  remove(pending: Pending): void {
    this.#waiting.delete(pending)
    this.ended++
    pending.client.waiting.delete(idOf(pending.query))
    for (const { channel, id } of pending.waits) {
      if (channel.waits.get(id) === pending) channel.waits.delete(id)
    }
    if (this.byName(pending.read.labels) === pending) {
      this.#byName.delete(JSON.stringify(pending.read.labels))
    }
  }

  /** Records that the daemon asked the server with that id. */
  asked(pending: Pending, channel: Channel, id: number): void {
    remember(pending, `asked over ${transportOf(channel)}`)
    pending.waits.push({ channel, id })
    channel.waits.set(id, pending)
  }

  /** Returns the query of a repetition over TCP, if one had to come. */
  repeated(labels: readonly string[]): Pending | undefined {
    const key = JSON.stringify(labels)
    const owing = this.#owing.get(key)
    this.#owing.delete(key)
    return owing?.pending
  }

  match(channel: Channel, octets: Uint8Array): Match {
    const pending = octets.length < 2 ? undefined : channel.waits.get(idOf(octets))
    const header = pending !== undefined && hasAnswerHeader(octets)
    const question = pending !== undefined && isAnswer(octets, pending.read)
    return { header, question, pending }
  }

  /** Records the necessary effect of a message, before it is sent, on the query with its id. */
  note({ question, pending }: Match, channel: Channel, octets: Uint8Array, mutated: boolean): void {
    if (pending === undefined || pending.accepted !== undefined) return
    const what = question ? 'answer' : 'mismatch'
    remember(
      pending,
      `${what} over ${transportOf(channel)}: ${Buffer.from(octets).toString('hex')}`,
    )
    if (question) {
      pending.accepted = { octets, overTcp: channel.overTcp, mutated }
    } else if (!channel.overTcp && !pending.owesRepeat) {
      pending.owesRepeat = true
      this.#owing.set(JSON.stringify(pending.read.labels), { pending, since: performance.now() })
    }
  }
}

export function idOf(octets: Uint8Array): number {
  return ((octets[0] ?? 0) << 8) | (octets[1] ?? 0)
}

export function transportOf({ overTcp }: { readonly overTcp: boolean }): 'TCP' | 'UDP' {
  return overTcp ? 'TCP' : 'UDP'
}

/** The most events in a history. The first ones are enough for a long query. */
const HISTORY_MAX = 32

function remember({ history, begun }: Pending, what: string): void {
  if (history.length < HISTORY_MAX)
    history.push(`${Math.round(performance.now() - begun)} ms: ${what}`)
}
