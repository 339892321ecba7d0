// Who waits for what: every query of a client until it is answered, and under which ids it was asked of the server. From
// this follows, before a message is sent to the daemon, whether it must be taken for an answer, and to which query.

import type { ReadQuery } from '../../support/models/query-oracle.ts'
import type { Random } from '../../support/models/random.ts'
import { hasAnswerHeader, isAnswer, type Fate } from './expected.ts'
import type { Who } from './world.ts'

/** A client's socket or connection. */
export interface Client {
  readonly who: Who
  readonly overTcp: boolean
  /** Its queries without reply, by their id. */
  readonly waiting: Map<number, Pending>
  send(octets: Uint8Array): void
}

/** The daemon's socket or connection towards the server. */
export interface Channel {
  readonly overTcp: boolean
  /** Queries asked on it that still wait, by the daemon's id. */
  readonly waits: Map<number, Pending>
  send(octets: Uint8Array): void
}

export interface Accepted {
  readonly octets: Uint8Array
  readonly overTcp: boolean
  readonly mutated: boolean
}

/** A query that must be replied to. */
export interface Pending {
  readonly number: number
  readonly random: Random
  readonly query: Uint8Array
  readonly read: ReadQuery
  readonly client: Client
  readonly fate: Fate
  /** Ended connections before it was asked. */
  readonly hangUps: number
  /** Second of the daemon's clock when it was asked. */
  readonly tick: number
  /** Never answered on purpose. */
  readonly silent: boolean
  readonly waits: { readonly channel: Channel; readonly id: number }[]
  /** Messages sent for it. */
  sent: number
  /** What the server saw and did, for the report of a difference: milliseconds since `begun`, and what. */
  readonly history: string[]
  readonly begun: number
  accepted: Accepted | undefined
  /** A mismatch came over UDP, so the query must come over TCP, once. */
  owesRepeat: boolean
}

export interface Match {
  /** Right id on the right socket, QR=1, opcode QUERY. */
  readonly header: boolean
  /** It is the answer to a query that waits. */
  readonly question: boolean
  /** Whose id it has. */
  readonly pending: Pending | undefined
}

export class Ledger {
  readonly #byName = new Map<string, Pending>()
  /** By name, oldest first: queries that must come over TCP, and since when. */
  readonly #owing = new Map<string, { readonly pending: Pending; readonly since: number }>()
  readonly #waiting = new Set<Pending>()
  /** Queries that were replied to. */
  ended = 0
  /** Grows when a connection is ended, and when the daemon has seen it: what it asked in between may be lost. */
  hangUps = 0

  /** Queries without reply. */
  get count(): number {
    return this.#waiting.size
  }

  get oldest(): Pending | undefined {
    for (const pending of this.#waiting) return pending
    return undefined
  }

  /** Whether a query for the name waits: two would make it unclear who taught what. */
  hasName(labels: readonly string[]): boolean {
    return this.#byName.has(JSON.stringify(labels))
  }

  byName(labels: readonly string[]): Pending | undefined {
    return this.#byName.get(JSON.stringify(labels))
  }

  /** A query that should have been asked again over TCP `ms` milliseconds ago and was not; excused if a connection ended. */
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

  /** The client has its reply. */
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

  /** The daemon asked the server, under that id. */
  asked(pending: Pending, channel: Channel, id: number): void {
    remember(pending, `asked over ${transportOf(channel)}`)
    pending.waits.push({ channel, id })
    channel.waits.set(id, pending)
  }

  /** A query for the name came over TCP; whose it is, if one had to come. */
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

  /** Notes what a message that is about to be sent must do to the query whose id it has. */
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

/** Of a query that goes on and on the beginning is enough. */
const HISTORY_MAX = 32

function remember({ history, begun }: Pending, what: string): void {
  if (history.length < HISTORY_MAX)
    history.push(`${Math.round(performance.now() - begun)} ms: ${what}`)
}
