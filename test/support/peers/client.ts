// Clients for tests of the transport: raw octets out, raw octets back, over UDP or one TCP connection.

import { createSocket, type Socket as DgramSocket } from 'node:dgram'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { frame } from './upstream.ts'

/** Resolves once `condition` holds. After `ms`, rejects with the text `what`. Checks every `paceMs`. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  ms = 30_000,
  paceMs = 2,
): Promise<void> {
  const end = performance.now() + ms
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`Waited ${ms} ms in vain: ${what}`)
    await sleep(paceMs)
  }
}

export class UdpClient {
  readonly received: Buffer[] = []
  readonly #socket: DgramSocket
  readonly #port: number

  private constructor(port: number) {
    this.#port = port
    this.#socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 })
    this.#socket.on('message', (octets) => this.received.push(octets))
  }

  /** A client at a loopback address that sends to 127.0.0.1:`port`. */
  static async open(port: number, address = '127.0.0.1', ownPort = 0): Promise<UdpClient> {
    const client = new UdpClient(port)
    await new Promise<void>((resolve, reject) => {
      client.#socket.once('error', reject)
      client.#socket.bind(ownPort, address, resolve)
    })
    return client
  }

  send(octets: Uint8Array): void {
    this.#socket.send(octets, this.#port, '127.0.0.1')
  }

  /** Sends the queries and waits for as many messages. */
  async ask(...queries: readonly Uint8Array[]): Promise<readonly Buffer[]> {
    const from = this.received.length
    for (const query of queries) this.send(query)
    await this.atLeast(from + queries.length)
    return this.received.slice(from)
  }

  async atLeast(count: number): Promise<void> {
    await until(`${count} UDP answers`, () => this.received.length >= count)
  }

  close(): void {
    this.#socket.close()
  }
}

export class TcpClient {
  readonly received: Buffer[] = []
  closed = false
  /** Whether the server sent FIN. */
  ended = false
  readonly socket: Socket
  #rest: Buffer = Buffer.alloc(0)

  private constructor(port: number, address: string) {
    this.socket = connect({
      port,
      host: '127.0.0.1',
      localAddress: address,
      allowHalfOpen: true,
      noDelay: true,
    })
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => (this.closed = true))
    this.socket.on('end', () => {
      this.ended = true
      this.socket.end()
    })
    this.socket.on('data', (chunk: Buffer) => this.#take(chunk))
  }

  static async open(port: number, address = '127.0.0.1'): Promise<TcpClient> {
    const client = new TcpClient(port, address)
    await new Promise<void>((resolve) => {
      client.socket.once('connect', () => resolve())
      client.socket.once('close', () => resolve())
    })
    return client
  }

  /** Sends framed messages in one write. */
  send(...messages: readonly Uint8Array[]): void {
    this.socket.write(Buffer.concat(messages.map(frame)))
  }

  async ask(...messages: readonly Uint8Array[]): Promise<readonly Buffer[]> {
    const from = this.received.length
    this.send(...messages)
    await this.atLeast(from + messages.length)
    return this.received.slice(from)
  }

  async atLeast(count: number): Promise<void> {
    await until(`${count} TCP answers`, () => this.received.length >= count)
  }

  close(): void {
    this.socket.destroy()
  }

  #take(chunk: Buffer): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    let at = 0
    while (this.#rest.length - at >= 2) {
      const size = this.#rest.readUInt16BE(at)
      if (this.#rest.length - at < 2 + size) break
      this.received.push(this.#rest.subarray(at + 2, at + 2 + size))
      at += 2 + size
    }
    this.#rest = this.#rest.subarray(at)
  }
}
