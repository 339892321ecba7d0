// Clients that send octets and keep the replies, over UDP or one TCP connection, from an address of their own.

import { Inbox } from './inbox.ts'
import type { Agent } from './agent-client.ts'

/** The place where a mode receives queries. */
export interface Asked {
  readonly address: string
  readonly port: number
}

export interface Datagram {
  readonly from: string
  readonly port: number
  readonly octets: Buffer
}

export class UdpClient {
  readonly inbox = new Inbox<Datagram>('datagram')
  readonly #agent: Agent
  readonly #to: Asked
  #n = 0

  private constructor(agent: Agent, to: Asked) {
    this.#agent = agent
    this.#to = to
  }

  /** `port` 0: any port. */
  static async open(agent: Agent, address: string, to: Asked, port = 0): Promise<UdpClient> {
    const client = new UdpClient(agent, to)
    client.#n = await agent.open(
      (n) => ({ op: 'udp', n, address, port }),
      (event) => {
        if (event.on !== 'datagram') return
        const { from, port: fromPort, hex } = event
        client.inbox.push({ from, port: fromPort, octets: Buffer.from(hex, 'hex') })
      },
    )
    return client
  }

  send(octets: Uint8Array): void {
    this.sendTo(octets, this.#to.address, this.#to.port)
  }

  sendTo(octets: Uint8Array, to: string, port: number): void {
    const hex = Buffer.from(octets).toString('hex')
    this.#agent.do({ op: 'send', n: this.#n, to, port, hex })
  }

  close(): void {
    this.#agent.do({ op: 'destroy', n: this.#n })
  }
}

export class TcpClient {
  /** Messages without their length. */
  readonly inbox = new Inbox<Buffer>('message')
  /** The result of each read. */
  readonly chunks: Buffer[] = []
  readonly ends = new Inbox<'ended' | 'closed'>('end of a connection')
  readonly counts = new Inbox<number>('count')
  readonly #agent: Agent
  #n = 0
  #rest = Buffer.alloc(0)

  private constructor(agent: Agent) {
    this.#agent = agent
  }

  static async open(agent: Agent, address: string, to: Asked): Promise<TcpClient> {
    const client = new TcpClient(agent)
    client.#n = await agent.open(
      (n) => ({ op: 'connect', n, from: address, to: to.address, port: to.port }),
      (event) => {
        if (event.on === 'data') client.#take(Buffer.from(event.hex, 'hex'))
        else if (event.on === 'ended' || event.on === 'closed') client.ends.push(event.on)
        else if (event.on === 'count') client.counts.push(event.octets)
      },
    )
    return client
  }

  get isOver(): boolean {
    return this.ends.items.length > 0
  }

  /** Sends framed messages, all in one write. */
  send(...messages: readonly Uint8Array[]): void {
    this.write(frames(...messages))
  }

  write(octets: Uint8Array, times = 1): void {
    const hex = Buffer.from(octets).toString('hex')
    this.#agent.do({ op: 'write', n: this.#n, hex, times })
  }

  do(op: 'end' | 'destroy' | 'pause' | 'resume' | 'quiet' | 'count'): void {
    this.#agent.do({ op, n: this.#n })
  }

  close(): void {
    this.do('destroy')
  }

  #take(chunk: Buffer): void {
    this.chunks.push(chunk)
    this.#rest = Buffer.concat([this.#rest, chunk])
    while (this.#rest.length >= 2) {
      const end = 2 + this.#rest.readUInt16BE(0)
      if (this.#rest.length < end) return
      this.inbox.push(this.#rest.subarray(2, end))
      this.#rest = this.#rest.subarray(end)
    }
  }
}

/** Each message after its length (RFC 1035 4.2.2). */
export function frames(...messages: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    messages.flatMap((message) => [
      Uint8Array.of(message.length >> 8, message.length & 255),
      message,
    ]),
  )
}
