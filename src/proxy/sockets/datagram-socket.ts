// One UDP socket of Node, made so that nothing about it is asynchronous: addresses are never looked up by
// name, so bind and connect act at once and their faults are return values. Writes the copies that a
// send needs: when the kernel's buffer is full libuv keeps the octets for later, so they can't lie in
// a slab that the next message overwrites (a client would get another's answer).

import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import type { Family } from '../../core/ip.ts'
import type { MessageView } from '../messages/message-view.ts'
import { copyOctets } from '../messages/octet-store.ts'

/** Sends that may wait in libuv for room in the kernel's buffer; beyond that they're dropped. */
const SEND_QUEUE_MAX = 1024

export interface DatagramSocketOptions {
  readonly family: Family
  readonly receiveBuffer?: number
  readonly onMessage: (message: Uint8Array, from: RemoteInfo) => void
  /** Errors of receiving (ICMP) and of sending; `code` is the system's, e.g. ECONNREFUSED. */
  readonly onError: (code: string) => void
}

export type SocketFault = { readonly code: string }

export class DatagramSocket {
  readonly #socket: Socket
  readonly #sent: (error: Error | null) => void
  readonly #onError: (code: string) => void
  /** Set while a call is under way whose error is its result. */
  #trying: boolean = false
  #fault: string | undefined
  #closed = false

  constructor(options: DatagramSocketOptions) {
    const { family, onError } = options
    this.#onError = onError
    this.#socket = createSocket({
      type: family === 4 ? 'udp4' : 'udp6',
      ipv6Only: family === 6,
      // Every address given is numeric, and a synchronous answer keeps bind, connect and send synchronous.
      lookup: (hostname, _options, done) => done(null, hostname, family),
      ...(options.receiveBuffer === undefined ? {} : { recvBufferSize: options.receiveBuffer }),
    })
    this.#sent = (error) => {
      if (error !== null && error !== undefined) this.#report(codeOf(error))
    }
    this.#socket.on('error', (error) => this.#report(codeOf(error)))
    this.#socket.on('message', options.onMessage)
  }

  /** Binds at once; the system's error code when that fails. */
  bind(address: string, port: number): SocketFault | undefined {
    return this.#try(() => this.#socket.bind({ address, port, exclusive: true }))
  }

  /** Connects at once (only datagrams of that peer arrive any more); the error code when that fails. */
  connect(address: string, port: number): SocketFault | undefined {
    return this.#try(() => {
      this.#socket.connect(port, address)
      this.#socket.remoteAddress()
    })
  }

  get port(): number {
    return this.#socket.address().port
  }

  /** Sends a copy with `id` as its first two octets on a connected socket. False when too many sends wait. */
  send(octets: Uint8Array, offset: number, length: number, id: number): boolean {
    if (!this.#hasRoom()) return false
    this.#socket.send(copyWithId(octets, offset, length, id), this.#sent)
    return true
  }

  /** As `send`, to a peer; `port` is 1..65535 and `address` numeric. */
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

/** The system's error code, e.g. EADDRINUSE; UNKNOWN when there's none. */
export function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code
  return 'UNKNOWN'
}
