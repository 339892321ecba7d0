// The packet transport with a minimal pipeline: it forwards every sound query, releases every answer, and learns nothing. It shows how the
// parts fit, and serves the transport's tests.

import { systemClock, type Clock } from '../../../src/core/clock.ts'
import { endpointId, generation } from '../../../src/core/ids.ts'
import { LOCAL, type LocalAnswer } from '../../../src/dns/codes.ts'
import { QueryView } from '../../../src/dns/query.ts'
import {
  FAILED_TIMEOUT,
  type AnswerBatch,
  type FailureBatch,
} from '../../../src/proxy/messages/answer-batch.ts'
import { type MessageBatch, BatchCollector } from '../../../src/proxy/messages/batch.ts'
import type { Datagrams } from '../../../src/proxy/sockets/datagrams.ts'
import { systemRandom } from '../../../src/core/random.ts'
import { Responder } from '../../../src/proxy/server/responder.ts'
import type { ServerAddress } from '../../../src/proxy/upstream/server-pool.ts'
import {
  DEFAULT_TCP_LIMITS,
  type TcpServerLimits,
} from '../../../src/proxy/server/connection-table.ts'
import { TcpServer } from '../../../src/proxy/server/tcp-server.ts'
import type { UdpListener } from '../../../src/proxy/sockets/udp-listener.ts'
import {
  DEFAULT_UPSTREAM_LIMITS,
  Upstream,
  type UpstreamLimits,
  type UpstreamOptions,
} from '../../../src/proxy/upstream/upstream.ts'
import { FakeClock } from '../fake-clock.ts'
import { openDatagrams, openStreams } from '../open-sockets.ts'
import { MessageView } from '../../../src/dns/message-view.ts'

export interface ForwarderOptions {
  readonly servers: readonly ServerAddress[]
  readonly upstream?: Partial<UpstreamLimits>
  readonly tcp?: Partial<TcpServerLimits>
  readonly udp?: NonNullable<UpstreamOptions['udp']>
  /** Default: a clock that does not advance, so that nothing times out on a busy machine. */
  readonly clock?: Clock
  /** Answers every query with this and forwards none. */
  readonly refuseAll?: LocalAnswer
}

/** 127.0.0.1 */
export const LOOPBACK = Uint8Array.of(127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

/** Timeouts pass only when the test advances the clock. Sockets and turns of the event loop are real. */
export function socketClock(fake: FakeClock): Clock {
  return {
    now: () => fake.now(),
    wall: () => fake.wall(),
    after: (ms, run) => fake.after(ms, run),
    every: (ms, run) => fake.every(ms, run),
    soon: (run) => systemClock.soon(run),
  }
}

export class Forwarder {
  readonly collector: BatchCollector
  readonly datagrams: Datagrams
  readonly udp: UdpListener
  readonly tcp: TcpServer
  readonly upstream: Upstream
  readonly responder: Responder
  /** Sizes of the batches that were handed over. */
  readonly batches: number[] = []
  readonly #view = new QueryView()
  readonly #refuseAll: LocalAnswer | undefined
  #tcpPort = 0

  private constructor(options: ForwarderOptions) {
    const { clock = socketClock(new FakeClock()) } = options
    this.#refuseAll = options.refuseAll
    this.datagrams = openDatagrams(clock)
    this.collector = new BatchCollector({ clock, onBatch: (batch) => this.#admit(batch) })
    const { collector } = this
    const streams = openStreams(clock)
    this.tcp = new TcpServer({
      clock,
      collector,
      streams,
      limits: { ...DEFAULT_TCP_LIMITS, ...options.tcp },
    })
    this.upstream = new Upstream({
      clock,
      random: systemRandom,
      servers: options.servers,
      limits: { ...DEFAULT_UPSTREAM_LIMITS, ...options.upstream },
      onAnswers: (answers) => this.#settle(answers),
      onFailures: (failures) => this.#fail(failures),
      streams,
      datagrams: this.datagrams,
      ...(options.udp === undefined ? {} : { udp: options.udp }),
    })
    this.datagrams.fill(collector)
    this.udp = this.datagrams.listen({
      channel: 0,
      family: 4,
      octets: LOOPBACK,
      port: 0,
      mode: 'explicit',
    })
    this.responder = new Responder({
      udp: [this.udp],
      tcp: this.tcp,
      inFlight: this.upstream.inFlight,
    })
  }

  static start(options: ForwarderOptions): Forwarder {
    const forwarder = new Forwarder(options)
    forwarder.#tcpPort = forwarder.tcp.listen({
      family: 4,
      octets: LOOPBACK,
      port: 0,
      mode: 'explicit',
    })
    return forwarder
  }

  get udpPort(): number {
    return this.udp.port
  }

  get tcpPort(): number {
    return this.#tcpPort
  }

  stop(): void {
    this.udp.stop()
    this.tcp.stop()
    this.upstream.stop()
    this.datagrams.stop()
  }

  #admit(batch: MessageBatch): void {
    this.batches.push(batch.count)
    for (let i = 0; i < batch.count; i++) this.#admitOne(batch, i)
  }

  #admitOne(batch: MessageBatch, i: number): void {
    const { octets, offset, length } = batch.view(i, new MessageView())
    const status = this.#view.read(octets, offset, length)
    if (status === 'silent') {
      this.responder.ignore(batch, i)
    } else if (status !== 'ok' || batch.oversized[i] === 1) {
      this.responder.refuse(batch, i, this.#view, LOCAL.queryMalformed)
    } else if (this.#refuseAll !== undefined) {
      this.responder.refuse(batch, i, this.#view, this.#refuseAll)
    } else {
      const result = this.upstream.forward(batch, i, this.#view, endpointId(1), generation(1))
      if (result !== 'forwarded') this.responder.refuse(batch, i, this.#view, LOCAL.overloaded)
    }
  }

  #settle(answers: AnswerBatch): void {
    for (let i = 0; i < answers.count; i++) {
      const slot = answers.slots[i] ?? 0
      const overTcp = answers.overTcp[i] === 1
      const message = answers.view(i, new MessageView())
      const rcode = (message.octets[message.offset + 3] ?? 0) & 15
      this.responder.answer(slot, message, overTcp, rcode)
      this.upstream.release(slot)
    }
  }

  #fail(failures: FailureBatch): void {
    for (let i = 0; i < failures.count; i++) {
      const slot = failures.slots[i] ?? 0
      const timeout = failures.reasons[i] === FAILED_TIMEOUT
      this.responder.answerLocally(slot, timeout ? LOCAL.upstreamTimeout : LOCAL.upstreamSocket)
      this.upstream.release(slot)
    }
  }
}
