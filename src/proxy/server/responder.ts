// Responder sends all messages to clients, through the listener or connection on which the query arrived (RFC 7766 5). A message
// has the client's own id, and is not longer than the client accepts. An answer that came over TCP can be too long for a client that
// asked over UDP. Then Responder sends header, question and OPT with TC=1, and the client asks again over TCP (P5). The pipeline
// calls Responder exactly once per query. Without this call a TCP connection would wait for the answer forever.

import type { LocalAnswer } from '../../dns/codes.ts'
import type { Question, QueryView } from '../../dns/query.ts'
import { u16 } from '../../dns/wire.ts'
import { LOCAL_ANSWER_MAX, writeLocalAnswer, writeTruncated } from '../../dns/reply.ts'
import type { MessageBatch } from '../messages/batch.ts'
import { OF_OURS, OVER_TCP } from '../messages/client-columns.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import { SlotView } from '../messages/slot-view.ts'
import { MessageView } from '../../dns/message-view.ts'
import type { UdpListener } from '../sockets/udp-listener.ts'
import type { TcpServer } from './tcp-server.ts'

/** Receives the answers to queries of namegate itself (prewarm.ts, own-questions.ts), with one call per query. */
export interface OwnQueries {
  answered(id: number, question: Question, message: MessageView): void
  /** `reply` is the local answer; absent if the query gets no answer. */
  unanswered(id: number, reply?: MessageView): void
}

export interface ResponderOptions {
  /** The UDP listeners by channel number. */
  readonly udp: readonly Pick<UdpListener, 'send'>[]
  readonly tcp: Pick<TcpServer, 'reply' | 'noReply'>
  readonly inFlight: InFlightTable
  /** Receives the answers to queries of namegate itself. These answers are not sent to a socket. */
  readonly own?: OwnQueries | undefined
  /** `limits.udp-message`, in octets. */
  readonly udpMessageMax?: number
}

const UDP_MESSAGE_MAX = 4096

export class Responder {
  readonly counters = {
    /** Answers that were shortened to fit the UDP size of the client. */
    truncated: 0,
  }
  readonly #options: ResponderOptions
  readonly #udpMessageMax: number
  readonly #view = new SlotView()
  /** The query that is being answered. */
  readonly #query = new MessageView()
  /** A local or shortened answer. */
  readonly #reply = MessageView.of(new Uint8Array(LOCAL_ANSWER_MAX))

  constructor(options: ResponderOptions) {
    this.#options = options
    this.#udpMessageMax = options.udpMessageMax ?? UDP_MESSAGE_MAX
  }

  /** Answers query `index` of a batch with a local answer. `view` has read the query. */
  refuse(batch: MessageBatch, index: number, view: QueryView, answer: LocalAnswer): void {
    const { udp, tcp, own } = this.#options
    const reply = this.#reply
    writeLocalAnswer(reply, batch.view(index, this.#query), view, answer)
    if (batch.transports[index] === OF_OURS) return own?.unanswered(view.id, reply)
    const channel = batch.channels[index]!
    if (batch.transports[index] === OVER_TCP) tcp.reply(channel, reply, view.id)
    else udp[channel]?.send(batch, index, reply, view.id)
  }

  /** Ends query `index` of a batch without an answer. */
  ignore(batch: MessageBatch, index: number): void {
    const { tcp, own } = this.#options
    if (batch.transports[index] === OVER_TCP) tcp.noReply(batch.channels[index]!)
    else if (batch.transports[index] === OF_OURS) {
      const { octets, offset } = batch.view(index, this.#query)
      own?.unanswered(u16(octets, offset))
    }
  }

  /**
   * Answers the client of a slot with the upstream's message, in which only the id changes. `rcode` is the answer's 12-bit RCODE,
   * which a shortened answer needs. The octets are copied.
   */
  answer(slot: number, message: MessageView, overTcp: boolean, rcode: number): void {
    const { inFlight } = this.#options
    const byUdp = inFlight.transports[slot] !== OVER_TCP
    if (!byUdp || message.length <= this.#limitFor(slot, overTcp)) {
      this.#send(slot, message)
      return
    }
    this.counters.truncated++
    const view = this.#view
    view.read(inFlight, slot)
    const reply = this.#reply
    writeTruncated(reply, inFlight.view(slot, this.#query), view, message, rcode)
    this.#send(slot, reply)
  }

  /** Answers the client of a slot with a local answer. */
  answerLocally(slot: number, answer: LocalAnswer): void {
    const { inFlight } = this.#options
    const view = this.#view
    view.read(inFlight, slot)
    writeLocalAnswer(this.#reply, inFlight.view(slot, this.#query), view, answer)
    this.#send(slot, this.#reply)
  }

  /** Ends the query of a slot without an answer. */
  ignoreSlot(slot: number): void {
    const { inFlight, tcp, own } = this.#options
    if (inFlight.transports[slot] === OVER_TCP) tcp.noReply(inFlight.channels[slot]!)
    else if (inFlight.transports[slot] === OF_OURS) own?.unanswered(inFlight.clientIds[slot]!)
  }

  /** Returns the longest UDP message for the slot's client, in octets. An answer over UDP already respects the client's size. */
  #limitFor(slot: number, overTcp: boolean): number {
    const own = this.#options.inFlight.udpSizes[slot]!
    return overTcp ? Math.min(own, this.#udpMessageMax) : this.#udpMessageMax
  }

  #send(slot: number, message: MessageView): void {
    const { inFlight, udp, tcp, own } = this.#options
    const id = inFlight.clientIds[slot]!
    const channel = inFlight.channels[slot]!
    if (inFlight.transports[slot] === OF_OURS) {
      this.#view.read(inFlight, slot)
      own?.answered(id, this.#view, message)
      return
    }
    if (inFlight.transports[slot] === OVER_TCP) tcp.reply(channel, message, id)
    else udp[channel]?.send(inFlight, slot, message, id)
  }
}
