// The clients of a scenario: queries as octets out, replies as octets in, read by dns-packet. A query gets at most one reply, over its own
// transport and with its own id.

import assert from 'node:assert/strict'
import { decode } from 'dns-packet'
import type { MessageBatch } from '../../../src/proxy/messages/batch.ts'
import type { ResponderOptions } from '../../../src/proxy/server/responder.ts'
import { addDatagram } from '../../support/datagram.ts'
import { mkQuery, opt } from '../../support/messages.ts'
import { canonicalAddress, octetsOf } from './addresses.ts'
import { RCODES } from './zone.ts'
import { hintsOf } from '../../support/models/oracle-svcb.ts'
import { MessageView } from '../../../src/dns/message-view.ts'

export interface Reply {
  readonly rcode: string
  readonly truncated: boolean
  /** Extended DNS Error, if there is one. */
  readonly ede: number | undefined
  /** Addresses of A and AAAA records, canonical and sorted. */
  readonly addresses: readonly string[]
}

export interface Question {
  readonly from: string
  readonly name: string
  readonly type: number
  readonly tcp: boolean
  readonly edns: boolean
}

const FIRST_PORT = 20_000
const PORTS = 40_000
const OPTION_EDE = 15

export class Clients {
  /** Called when the reply to question `number` leaves to an address, before anything else happens. */
  onReply: (reply: Reply, to: string, number: number) => void = () => undefined
  /** The reply to the last question. Undefined until it arrives. */
  last: Reply | undefined
  #asked = 0
  readonly #replied = new Set<number>()
  /** Address of the client of each port. */
  readonly #from = new Map<number, string>()

  get counters(): { readonly asked: number; readonly replied: number } {
    return { asked: this.#asked, replied: this.#replied.size }
  }

  /** The way of replies. */
  readonly udp: ResponderOptions['udp'] = [
    {
      send: (clients, row, { octets, offset, length }, id) =>
        this.#receive(clients.ports[row] ?? 0, octets.subarray(offset, offset + length), id),
    },
  ]
  readonly tcp: ResponderOptions['tcp'] = {
    reply: (channel, { octets, offset, length }, id) =>
      this.#receive(channel, octets.subarray(offset, offset + length), id),
    noReply: () => undefined,
  }

  /** Puts a query into the batch. The number of the question is the client's port, and the channel over TCP. */
  ask(batch: MessageBatch, { from, name, type, tcp, edns }: Question): void {
    this.last = undefined
    const number = ++this.#asked
    const id = number & 0xffff
    const additionals = edns ? [opt()] : []
    const message = mkQuery(name, type, { id, additionals })
    const source = octetsOf(from)
    assert.ok(source !== undefined, `${from} is an address`)
    const peer = new Uint8Array(16)
    peer.set(source)
    const family = source.length === 4 ? 4 : 6
    const port = portOf(number)
    this.#from.set(port, from)
    if (tcp) batch.addTcp(port, family, peer, port, MessageView.of(message))
    else addDatagram(batch, { channel: 0, family, peer, port }, message)
  }

  #receive(port: number, octets: Uint8Array, id: number): void {
    const number = this.#asked
    assert.ok(!this.#replied.has(port), 'a query gets one reply')
    this.#replied.add(port)
    const reply = read(octets)
    if (port === portOf(number)) {
      assert.equal(id, number & 0xffff, 'the reply has the id of the query')
      this.last = reply
    }
    this.onReply(reply, this.#from.get(port) ?? '', port - FIRST_PORT)
  }
}

function portOf(number: number): number {
  return FIRST_PORT + (number % PORTS)
}

function read(octets: Uint8Array): Reply {
  const message = decode(Buffer.from(octets))
  const addresses = (message.answers ?? []).flatMap((record) => {
    if (record.type === 'A' || record.type === 'AAAA') return [canonicalAddress(record.data)]
    const isHttps = String(record.type) === 'UNKNOWN_65' && 'data' in record
    return isHttps && record.data instanceof Uint8Array
      ? hintsOf(record.data).map(canonicalAddress)
      : []
  })
  const options = (message.additionals ?? []).flatMap((record) =>
    record.type === 'OPT' ? record.options : [],
  )
  const error = options.find(({ code }) => Number(code) === OPTION_EDE)
  const data = error !== undefined && 'data' in error ? error.data : undefined
  return {
    rcode: RCODES[(octets[3] ?? 0) & 15] ?? 'unknown',
    truncated: ((octets[2] ?? 0) & 2) !== 0,
    ede: data instanceof Uint8Array ? Buffer.from(data).readUInt16BE(0) : undefined,
    addresses: addresses.sort(),
  }
}
