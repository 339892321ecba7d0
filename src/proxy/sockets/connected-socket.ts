// ConnectedSocket is a UDP socket of the addon that is connected to one server. A send only adds a row to the next flush. The addon
// counts, and the counts are read on request.

import { errnoName } from '../../native/native.ts'
import { HANDLE_PLACE, REPORT_WORDS, STAT_KERNEL_DROPS, STAT_WORDS } from '../../native/udp/udp.ts'
import type { SocketEngine } from './socket-engine.ts'

/** The user of a connected socket. */
export interface DatagramOwner {
  /** The octets source[offset, offset + length) arrived. They are valid during the call. */
  received(source: Uint8Array, offset: number, length: number): void
  /** The kernel reported an error, such as ECONNREFUSED: the peer, or the route to the peer, does not work. */
  fault(code: string): void
  /** `count` datagrams were not sent, because there was no room. */
  dropped(count: number): void
}

export class ConnectedSocket {
  readonly handle: number
  readonly owner: DatagramOwner
  readonly #engine: SocketEngine
  readonly #stats = new Float64Array(STAT_WORDS)

  constructor(engine: SocketEngine, handle: number, owner: DatagramOwner) {
    this.#engine = engine
    this.handle = handle
    this.owner = owner
  }

  /** Datagrams that were lost because the receive buffer was full. */
  get kernelDrops(): number {
    this.#engine.readStats(this.handle, this.#stats)
    return this.#stats[STAT_KERNEL_DROPS]!
  }

  /** Sends a copy with `id` as the first two octets. A failure is reported to the owner later. */
  send(octets: Uint8Array, offset: number, length: number, id: number): void {
    this.#engine.prepare(length)
    this.#engine.sends.add(this.handle, octets, offset, length, id)
  }

  close(): void {
    this.#engine.readStats(this.handle, this.#stats)
    this.#engine.close(this.handle)
  }
}

/** Error codes that mean a lack of room in the kernel, and not a failure of the peer or the route. */
const WANT_OF_ROOM = /^(?:EAGAIN|EWOULDBLOCK|ENOBUFS|ENOMEM|EMSGSIZE)$/

/** Reports the kernel's errors to the owners of the sockets. The index in `sockets` is `handle & HANDLE_PLACE`. */
export function reportErrors(
  reports: Int32Array,
  sockets: readonly (ConnectedSocket | undefined)[],
): void {
  for (let at = 0; at < reports.length; at += REPORT_WORDS) {
    const handle = reports[at]!
    const socket = sockets[handle & HANDLE_PLACE]
    if (socket?.handle !== handle) continue
    const code = errnoName(reports[at + 1]!)
    if (reports[at + 2]! > 0) socket.owner.dropped(reports[at + 2]!)
    if (!WANT_OF_ROOM.test(code)) socket.owner.fault(code)
  }
}
