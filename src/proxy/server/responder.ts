// The one place where messages leave for clients: by the listener or connection that the query came on
// (RFC 7766 5), under the client's own id, and no longer than the client takes. An answer that came over TCP
// may be too long for a client that asked over UDP; it goes out as header, question and OPT with TC=1 and the
// client asks again over TCP (P5). Every query ends in exactly one call here, else its connection waits for ever.

import type { LocalAnswer } from '../../dns/codes.ts'
import type { Question, QueryView } from '../../dns/query.ts'
import { u16 } from '../../dns/wire.ts'
import { LOCAL_ANSWER_MAX, writeLocalAnswer, writeTruncated } from '../../dns/reply.ts'
import type { MessageBatch } from '../messages/batch.ts'
import { OF_OURS, OVER_TCP } from '../messages/client-columns.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import { SlotView } from '../messages/slot-view.ts'
import { MessageView } from '../messages/message-view.ts'
import type { UdpListener } from '../sockets/datagrams.ts'
import type { TcpServer } from './tcp-server.ts'

/** What asks of its own accord: prewarm.ts, own-questions.ts. Every query of these ends in one call. */
export interface OwnQueries {
  answered(id: number, question: Question, message: MessageView): void
  /** `octets`: the local answer, which begins there; absent when there is none. */
  unanswered(id: number, octets?: Uint8Array, length?: number): void
}

export interface ResponderOptions {
  /** By channel number. */
  readonly udp: readonly Pick<UdpListener, 'send'>[]
  readonly tcp: Pick<TcpServer, 'reply' | 'noReply'>
  readonly inFlight: InFlightTable
  /** Takes answers to queries of our own; they leave by no socket. */
  readonly own?: OwnQueries | undefined
  /** `limits.udp-message`, in octets. */
  readonly udpMessageMax?: number
}

const UDP_MESSAGE_MAX = 4096

export class Responder {
  readonly counters = {
    /** Answers shortened to fit a client's UDP size. */
    truncated: 0,
  }
  readonly #options: ResponderOptions
  readonly #udpMessageMax: number
  readonly #view = new SlotView()
  readonly #scratch = new Uint8Array(LOCAL_ANSWER_MAX)
  /** A local or shortened answer, in `#scratch`. */
  readonly #message = new MessageView()

  constructor(options: ResponderOptions) {
    this.#options = options
    this.#udpMessageMax = options.udpMessageMax ?? UDP_MESSAGE_MAX
  }

  /** Answers a batch entry with a local answer. `view` has read it. */
  refuse(batch: MessageBatch, index: number, view: QueryView, answer: LocalAnswer): void {
    const out = this.#scratch
    const query = batch.octets(index)
    const length = writeLocalAnswer(out, 0, query, batch.offset(index), view, answer)
    if (batch.transports[index] === OF_OURS) {
      return this.#options.own?.unanswered(view.id, out, length)
    }
    const channel = batch.channels[index]!
    if (batch.transports[index] === OVER_TCP) {
      this.#options.tcp.reply(channel, out, 0, length, view.id)
      return
    }
    this.#options.udp[channel]?.send(batch, index, this.#message.set(out, 0, length), view.id)
  }

  /** A batch entry gets no answer. */
  ignore(batch: MessageBatch, index: number): void {
    const { tcp, own } = this.#options
    if (batch.transports[index] === OVER_TCP) tcp.noReply(batch.channels[index]!)
    else if (batch.transports[index] === OF_OURS)
      own?.unanswered(u16(batch.octets(index), batch.offset(index)))
  }

  /**
   * Answers the client of a slot with an upstream's message, byte for byte but for the id. `rcode` is the answer's,
   * all 12 bits, for the case that it must be shortened. The octets are copied.
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
    const query = inFlight.octets(slot)
    const at = inFlight.offset(slot)
    const { octets, offset } = message
    const cut = writeTruncated(this.#scratch, 0, query, at, view, octets, offset, rcode)
    this.#send(slot, this.#message.set(this.#scratch, 0, cut))
  }

  /** Answers the client of a slot with a local answer. */
  answerLocally(slot: number, answer: LocalAnswer): void {
    const { inFlight } = this.#options
    const view = this.#view
    view.read(inFlight, slot)
    const query = inFlight.octets(slot)
    const at = inFlight.offset(slot)
    const length = writeLocalAnswer(this.#scratch, 0, query, at, view, answer)
    this.#send(slot, this.#message.set(this.#scratch, 0, length))
  }

  /** The client of a slot gets no answer. */
  ignoreSlot(slot: number): void {
    const { inFlight, tcp, own } = this.#options
    if (inFlight.transports[slot] === OVER_TCP) tcp.noReply(inFlight.channels[slot]!)
    else if (inFlight.transports[slot] === OF_OURS) own?.unanswered(inFlight.clientIds[slot]!)
  }

  /** Longest message for the slot's client over UDP. What came over UDP was made for the client's own size. */
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
    if (inFlight.transports[slot] === OVER_TCP) {
      tcp.reply(channel, message.octets, message.offset, message.length, id)
      return
    }
    udp[channel]?.send(inFlight, slot, message, id)
  }
}
