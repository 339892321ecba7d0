// DatagramSocket is one UDP socket of Node, with synchronous methods. Node looks up no names here, so bind and connect act at once
// and return their errors. A send copies its octets, because libuv sends them later if the kernel's buffer is full. Without the
// copy, the next message could overwrite the octets, and a client would get the answer of another client.

import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import type { Family } from '../../core/ip.ts'
import type { MessageView } from '../../dns/message-view.ts'
import { copyOctets } from '../messages/octet-store.ts'

/** The largest number of sends that wait in libuv for room in the kernel's buffer. Further sends are dropped. */
const SEND_QUEUE_MAX = 1024

export interface DatagramSocketOptions {
  readonly family: Family
  readonly receiveBuffer?: number
  readonly onMessage: (message: Uint8Array, from: RemoteInfo) => void
  /** Called after an error of receiving (ICMP) or of sending. `code` is the system's error code, such as ECONNREFUSED. */
  readonly onError: (code: string) => void
}

export type SocketFault = { readonly code: string }

export class DatagramSocket {
  readonly #socket: Socket
  readonly #sent: (error: Error | null) => void
  readonly #onError: (code: string) => void
  /** True during a call of bind or connect, which returns the error as its result. */
  #trying: boolean = false
  #fault: string | undefined
  #closed = false

  constructor(options: DatagramSocketOptions) {
    const { family, onError } = options
    this.#onError = onError
    this.#socket = createSocket({
      type: family === 4 ? 'udp4' : 'udp6',
      ipv6Only: family === 6,
      // All addresses are numeric. A lookup that answers at once keeps bind, connect and send synchronous.
      lookup: (hostname, _options, done) => done(null, hostname, family),
      ...(options.receiveBuffer === undefined ? {} : { recvBufferSize: options.receiveBuffer }),
    })
    this.#sent = (error) => {
      if (error !== null && error !== undefined) this.#report(codeOf(error))
    }
    this.#socket.on('error', (error) => this.#report(codeOf(error)))
    this.#socket.on('message', options.onMessage)
  }

  /** Binds at once. Returns undefined on success, or the system's error code. */
  bind(address: string, port: number): SocketFault | undefined {
    return this.#try(() => this.#socket.bind({ address, port, exclusive: true }))
  }

  /** Connects at once: the kernel then drops datagrams of other peers. Returns undefined on success, or the system's error code. */
  connect(address: string, port: number): SocketFault | undefined {
    return this.#try(() => {
      this.#socket.connect(port, address)
      this.#socket.remoteAddress()
    })
  }

  get port(): number {
    return this.#socket.address().port
  }

  /** Sends a copy on a connected socket, with `id` as the first two octets. Returns false if too many sends wait. */
  send(octets: Uint8Array, offset: number, length: number, id: number): boolean {
    if (!this.#hasRoom()) return false
    this.#socket.send(copyWithId(octets, offset, length, id), this.#sent)
    return true
  }

  /** Sends a copy to a peer, with `id` as the first two octets. `port` is 1..65535, `address` numeric. Returns false as `send` does. */
  sendTo(message: MessageView, id: number, port: number, address: string): boolean {
    if (!this.#hasRoom()) return false
    const { octets, offset, length } = message
    this.#socket.send(copyWithId(octets, offset, length, id), port, address, this.#sent)
    return true
  }

  #hasRoom(): boolean {
    return !this.#closed && this.#socket.getSendQueueCount() < SEND_QUEUE_MAX
  }

  unref(): void {
    this.#socket.unref()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#socket.removeAllListeners('message')
    this.#socket.close()
  }

  #report(code: string): void {
    if (this.#trying) this.#fault = code
    else if (!this.#closed) this.#onError(code)
  }

  #try(act: () => void): SocketFault | undefined {
    this.#trying = true
    this.#fault = undefined
    try {
      act()
    } catch (error) {
      this.#fault ??= codeOf(error)
    } finally {
      this.#trying = false
    }
    const code: string | undefined = this.#fault
    return code === undefined ? undefined : { code }
  }
}

function copyWithId(octets: Uint8Array, offset: number, length: number, id: number): Buffer {
  const copy = Buffer.allocUnsafe(length)
  copyOctets(octets, offset, copy, 0, length)
  copy[0] = id >> 8
  copy[1] = id & 0xff
  return copy
}

/** Returns the system's error code, such as EADDRINUSE, or UNKNOWN if the error has none. */
export function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code
  return 'UNKNOWN'
}
