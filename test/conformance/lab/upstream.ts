// The scripted server behind namegate. It keeps queries by question name. It answers with the handler of the name, or otherwise with one A
// record. It can also send from another address or port.

import { Inbox } from './inbox.ts'
import type { Agent } from './agent-client.ts'
import type { AgentEvent } from './agent.ts'
import { frames } from './clients.ts'
import {
  a,
  ANSWER_FLAGS,
  labelsOf,
  mkMessage,
  type MkMessage,
  type MkQuestion,
} from '../../support/messages.ts'

export type Transport = 'udp' | 'tcp'

/** A query as it arrived. */
export interface AskedQuery {
  readonly octets: Buffer
  readonly id: number
  /** The first question in its own case. The root if there is none. */
  readonly question: MkQuestion
  readonly transport: Transport
  /** The proxy's source port. */
  readonly port: number
  readonly connection: number
  /** Sends octets back by the way of the query. */
  readonly send: (octets: Uint8Array) => void
}

export type Handler = (asked: AskedQuery) => void

/** 'address': from another address than the server's; 'port': from another port. */
export type Forged = 'address' | 'port' | 'none'

export interface Place {
  readonly address: string
  readonly other: string
  /** The proxy's source address. */
  readonly proxy: string
}

export const DEFAULT_ADDRESS = '198.19.255.1'
const DNS_PORT = 53

export class ScriptedUpstream {
  /** Every query, in order. */
  readonly queries = new Inbox<AskedQuery>('query at the upstream')
  /** The numbers of accepted and of closed connections. */
  readonly accepted = new Inbox<number>('connection at the upstream')
  readonly #agent: Agent
  readonly #place: Place
  readonly #handlers = new Map<string, Handler>()
  readonly #byName = new Map<string, Inbox<AskedQuery>>()
  readonly #floods = new Inbox<number>('flood')
  readonly #sockets: Record<Forged, number> = { none: 0, address: 0, port: 0 }
  #listener = 0

  private constructor(agent: Agent, place: Place) {
    this.#agent = agent
    this.#place = place
  }

  static async start(agent: Agent, place: Place): Promise<ScriptedUpstream> {
    const upstream = new ScriptedUpstream(agent, place)
    const udp = (address: string, port: number) =>
      agent.open(
        (n) => ({ op: 'udp', n, address, port }),
        (event) => upstream.#onUdp(event),
      )
    upstream.#sockets.none = await udp(place.address, DNS_PORT)
    upstream.#sockets.address = await udp(place.other, DNS_PORT)
    upstream.#sockets.port = await udp(place.address, 0)
    upstream.#listener = await agent.open(
      (n) => ({ op: 'listen', n, address: place.address, port: DNS_PORT }),
      (event) => upstream.#onAccepted(event),
    )
    return upstream
  }

  /** Sets the handler of the name from now on. */
  on(name: readonly string[], handler: Handler): void {
    this.#handlers.set(keyOf(name), handler)
  }

  /** Queries for the name in any case. */
  asked(name: readonly string[]): Inbox<AskedQuery> {
    const key = keyOf(name)
    const known = this.#byName.get(key) ?? new Inbox<AskedQuery>(`query for ${name.join('.')}`)
    this.#byName.set(key, known)
    return known
  }

  /** Sends a datagram to the socket from which a query came. */
  sendUdp(octets: Uint8Array, port: number, forged: Forged = 'none'): void {
    const hex = Buffer.from(octets).toString('hex')
    const n = this.#sockets[forged]
    this.#agent.do({ op: 'send', n, to: this.#place.proxy, port, hex })
  }

  /** Sends the message with all ids `step` apart, its own id last. Resolves after the last one. */
  async flood(octets: Uint8Array, port: number, forged: Forged, step: number): Promise<void> {
    const message = Buffer.from(octets)
    const n = this.#sockets[forged]
    const before = this.#floods.items.filter((each) => each === n).length
    const hex = message.toString('hex')
    const last = message.readUInt16BE(0)
    this.#agent.do({ op: 'flood', n, to: this.#place.proxy, port, hex, step, last })
    const isDone = (all: readonly number[]) => all.filter((each) => each === n).length > before
    await this.#floods.until(isDone, 'its end', 60_000)
  }

  /** Ends the connection of a query. */
  hangUp(connection: number): void {
    this.#agent.do({ op: 'destroy', n: connection })
  }

  /** Stops the server. Its ports are closed on return. */
  async close(): Promise<void> {
    for (const n of [...Object.values(this.#sockets), this.#listener]) {
      this.#agent.do({ op: 'destroy', n })
    }
    for (const n of this.accepted.items) this.hangUp(n)
    // The agent works through commands in order, so this answer comes after all earlier ones.
    await this.#agent.open(
      (n) => ({ op: 'udp', n, address: this.#place.address, port: 0 }),
      () => undefined,
    )
  }

  #onUdp(event: AgentEvent): void {
    if (event.on === 'flooded') this.#floods.push(event.n)
    if (event.on !== 'datagram') return
    const { port } = event
    const send = (octets: Uint8Array): void => this.sendUdp(octets, port)
    this.#take(Buffer.from(event.hex, 'hex'), 'udp', port, 0, send)
  }

  #onAccepted(event: AgentEvent): void {
    if (event.on !== 'accepted') return
    const { connection, port } = event
    this.accepted.push(connection)
    const send = (octets: Uint8Array): void => {
      const hex = frames(octets).toString('hex')
      this.#agent.do({ op: 'write', n: connection, hex, times: 1 })
    }
    let rest = Buffer.alloc(0)
    this.#agent.follow(connection, (each) => {
      if (each.on === 'ended' || each.on === 'closed') this.hangUp(connection)
      if (each.on !== 'data') return
      rest = Buffer.concat([rest, Buffer.from(each.hex, 'hex')])
      while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
        const end = 2 + rest.readUInt16BE(0)
        this.#take(rest.subarray(2, end), 'tcp', port, connection, send)
        rest = rest.subarray(end)
      }
    })
  }

  #take(
    octets: Buffer,
    transport: Transport,
    port: number,
    connection: number,
    send: (octets: Uint8Array) => void,
  ): void {
    const question = readQuestion(octets)
    const id = octets.readUInt16BE(0)
    const asked: AskedQuery = { octets, id, question, transport, port, connection, send }
    const name = labelsOfQuestion(question)
    this.queries.push(asked)
    this.asked(name).push(asked)
    const handler = this.#handlers.get(keyOf(name))
    if (handler === undefined) send(answerTo(asked, { answers: [a(name, DEFAULT_ADDRESS)] }))
    else handler(asked)
  }
}

/** NOERROR to the query. `change` can replace any part. */
export function answerTo(asked: AskedQuery, change: MkMessage = {}): Uint8Array {
  const { id, question } = asked
  return mkMessage({ id, flags: ANSWER_FLAGS, questions: [question], ...change })
}

export function labelsOfQuestion({ name }: MkQuestion): readonly string[] {
  return typeof name === 'object' && 'raw' in name ? [] : labelsOf(name)
}

function keyOf(name: readonly string[]): string {
  return JSON.stringify(name.map((label) => label.toLowerCase()))
}

/** The first question, read without pointers. An unreadable one is the root. */
function readQuestion(octets: Buffer): MkQuestion {
  const labels: string[] = []
  let at = 12
  while (at < octets.length && octets.readUInt8(at) !== 0 && octets.readUInt8(at) < 64) {
    const size = octets.readUInt8(at)
    labels.push(octets.toString('latin1', at + 1, at + 1 + size))
    at += 1 + size
  }
  if (at + 5 > octets.length) return { name: [], type: 1, class: 1 }
  return { name: labels, type: octets.readUInt16BE(at + 1), class: octets.readUInt16BE(at + 3) }
}
