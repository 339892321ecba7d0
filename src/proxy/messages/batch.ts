// A batch of messages that clients sent, with where each came from. Listeners fill it, the pipeline
// reads it inside one synchronous call, then it is cleared and used again: nothing may keep an entry.
// Nothing here knows what kind of socket filled it. Cost: one slab and a few typed arrays, made once.

import type { Family } from '../../core/ip.ts'
import { invariant } from '../../core/invariant.ts'
import { ClientColumns, OVER_TCP, OVER_UDP } from './client-columns.ts'
import type { MessageView } from './message-view.ts'
import { DEFAULT_STRIDE, OctetStore } from './octet-store.ts'

/** Messages that one batch takes. */
export const BATCH_CAPACITY = 256

export interface MessageBatchOptions {
  readonly capacity?: number
  /** Octets of one cell; longer UDP messages are cut and marked, longer TCP messages kept outside. */
  readonly stride?: number
}

export class MessageBatch extends ClientColumns {
  readonly store: OctetStore
  /** 1 where a UDP message was longer than a cell and is cut: its answer is FORMERR (docs/spec/semantics 6). */
  readonly oversized: Uint8Array
  #count = 0

  constructor(options: MessageBatchOptions = {}) {
    const capacity = options.capacity ?? BATCH_CAPACITY
    super(capacity)
    this.store = new OctetStore(capacity, options.stride ?? DEFAULT_STRIDE)
    this.oversized = new Uint8Array(capacity)
  }

  get count(): number {
    return this.#count
  }

  get full(): boolean {
    return this.#count === this.store.capacity
  }

  octets(index: number): Uint8Array {
    return this.store.octets(index)
  }

  offset(index: number): number {
    return this.store.offsets[index]!
  }

  length(index: number): number {
    return this.store.lengths[index]!
  }

  /** The octets of a message, put into a view. */
  view(index: number, into: MessageView): MessageView {
    return this.store.view(index, into)
  }

  /** Adds a datagram; the batch must not be full. `peer` is 16 octets. */
  addUdp(
    channel: number,
    family: Family,
    peer: Uint8Array,
    port: number,
    message: Uint8Array,
  ): void {
    const index = this.#addPeer(OVER_UDP, channel, family, peer, port)
    const { stride } = this.store
    this.oversized[index] = message.length > stride ? 1 : 0
    this.store.copy(index, message, 0, Math.min(message.length, stride))
  }

  /** Adds one framed message without its length octets; the batch must not be full. */
  addTcp(
    channel: number,
    family: Family,
    peer: Uint8Array,
    port: number,
    { octets, offset, length }: MessageView,
  ): void {
    const index = this.#addPeer(OVER_TCP, channel, family, peer, port)
    this.oversized[index] = 0
    this.store.keep(index, octets, offset, length)
  }

  /** Native sockets have filled all columns of the next `count` entries, octets and lengths included. */
  extend(count: number): void {
    invariant(this.#count + count <= this.store.capacity, 'a batch has room for what was received')
    this.#count += count
  }

  clear(): void {
    this.store.clear(this.#count)
    this.#count = 0
  }

  #addPeer(
    transport: number,
    channel: number,
    family: Family,
    peer: Uint8Array,
    port: number,
  ): number {
    const index = this.#count++
    this.transports[index] = transport
    this.channels[index] = channel
    this.families[index] = family
    this.ports[index] = port
    this.interfaces[index] = 0
    this.askedPorts[index] = 0
    for (let i = 0; i < 16; i++) {
      this.addresses[index * 16 + i] = peer[i]!
      this.askedAddresses[index * 16 + i] = 0
    }
    return index
  }
}
