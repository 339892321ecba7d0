// Adds a datagram to a batch as the UDP addon does: a datagram that is longer than a cell is cut and marked.

import type { Family } from '../../src/core/ip.ts'
import { MessageView } from '../../src/dns/message-view.ts'
import type { MessageBatch } from '../../src/proxy/messages/batch.ts'
import { OVER_UDP } from '../../src/proxy/messages/client-columns.ts'

export interface Sender {
  readonly channel: number
  readonly family: Family
  /** 16 octets. */
  readonly peer: Uint8Array
  readonly port: number
}

/** The batch must have room. */
export function addDatagram(batch: MessageBatch, sender: Sender, message: Uint8Array): void {
  const index = batch.count
  const { stride } = batch.store
  const { channel, family, peer, port } = sender
  batch.addTcp(channel, family, peer, port, MessageView.of(message.subarray(0, stride)))
  batch.transports[index] = OVER_UDP
  batch.oversized[index] = message.length > stride ? 1 : 0
}
