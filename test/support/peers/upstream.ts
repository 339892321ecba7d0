// A name server for tests, on UDP and TCP at one loopback port. One function, which can change at any time, handles each query. The server
// keeps every query. dns-packet makes the messages, so the tests do not depend on the product's reading of the wire.

import dnsPacket, { type Answer, type DecodedPacket } from 'dns-packet'
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'

export interface SeenQuery {
  readonly transport: 'udp' | 'tcp'
  /** Number of the TCP connection from 1; 0 for UDP. */
  readonly connection: number
  /** The proxy's source port. */
  readonly port: number
  readonly octets: Buffer
  readonly packet: DecodedPacket
  readonly id: number
  /** As in the query, in its own case, without final dot. */
  readonly name: string
  /** Sends octets to the asker from the asked socket. */
  send(octets: Uint8Array): void
  /** Ends the TCP connection at once. Does nothing for UDP. */
  hangUp(): void
}

export type Behaviour = (query: SeenQuery, server: FakeUpstream) => void

/** Never answers. */
export const silent: Behaviour = () => undefined

/** Answers every question with one address. */
export const answering: Behaviour = (query) => query.send(answerTo(query))

export interface AnswerShape {
  readonly id?: number
  readonly name?: string
  readonly type?: string
  readonly addresses?: readonly string[]
  readonly ttl?: number
  /** Header bits besides QR and RA. */
  readonly flags?: number
  readonly rcode?: number
  /** Adds a TXT record of about that many octets. */
  readonly padding?: number
}

const TC = 0x0200

export const TRUNCATED = TC

/** An answer to the query. It is correct unless `shape` changes it. */
export function answerTo(query: SeenQuery, shape: AnswerShape = {}): Buffer {
  const name = shape.name ?? query.name
  const question = query.packet.questions?.[0]
  const answers: Answer[] = (shape.addresses ?? ['192.0.2.1']).map((data) => ({
    type: data.includes(':') ? 'AAAA' : 'A',
    name,
    ttl: shape.ttl ?? 60,
    data,
  }))
  for (let left = shape.padding ?? 0; left > 0; left -= 255) {
    answers.push({ type: 'TXT', name, ttl: 60, data: Buffer.alloc(Math.min(left, 255), 0x78) })
  }
  const octets = dnsPacket.encode({
    type: 'response',
    id: shape.id ?? query.id,
    flags: dnsPacket.RECURSION_DESIRED | dnsPacket.RECURSION_AVAILABLE | (shape.flags ?? 0),
    questions: question === undefined ? [] : [{ ...question, name }],
    answers,
  })
  if (shape.rcode !== undefined) octets.writeUInt8((octets.readUInt8(3) & 0xf0) | shape.rcode, 3)
  return octets
}

export class FakeUpstream {
  readonly queries: SeenQuery[] = []
  behaviour: Behaviour
  /** Keeps `queries` empty, for tests that only count. */
  forgetful = false
  seen = 0
  connections = 0
  readonly #udp: UdpSocket
  readonly #tcp: Server
  readonly #sockets = new Set<Socket>()
  #port = 0

  private constructor(behaviour: Behaviour) {
    this.behaviour = behaviour
    this.#udp = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 })
    this.#tcp = createServer((socket) => this.#accept(socket))
    this.#udp.on('error', () => undefined)
    this.#udp.on('message', (octets, from) => {
      this.#see('udp', 0, from.port, octets, (message) =>
        this.#udp.send(message, from.port, from.address),
      )
    })
  }

  /** Starts at a free port of 127.0.0.1, or at `port`. */
  static async start(behaviour: Behaviour = answering, port = 0): Promise<FakeUpstream> {
    for (let tries = 0; ; tries++) {
      const server = new FakeUpstream(behaviour)
      try {
        await server.#listen(port)
        return server
      } catch (error) {
        await server.stop()
        if (port !== 0 || tries === 20) throw error
      }
    }
  }

  get port(): number {
    return this.#port
  }

  /** The address in the proxy's configuration. */
  get address() {
    return { family: 4, address: '127.0.0.1', port: this.#port } as const
  }

  /** Ends all TCP connections. */
  hangUp(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async stop(): Promise<void> {
    this.hangUp()
    await new Promise<void>((resolve) => {
      if (!this.#tcp.listening) resolve()
      else this.#tcp.close(() => resolve())
    })
    await new Promise<void>((resolve) => this.#udp.close(() => resolve()))
  }

  async #listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#tcp.once('error', reject)
      this.#tcp.listen(port, '127.0.0.1', resolve)
    })
    const address: AddressInfo | string | null = this.#tcp.address()
    this.#port = typeof address === 'object' && address !== null ? address.port : 0
    await new Promise<void>((resolve, reject) => {
      this.#udp.once('error', reject)
      this.#udp.bind(this.#port, '127.0.0.1', resolve)
    })
  }

  #accept(socket: Socket): void {
    const number = ++this.connections
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
    let rest = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
        const size = rest.readUInt16BE(0)
        const octets = rest.subarray(2, 2 + size)
        rest = rest.subarray(2 + size)
        const port = socket.remotePort ?? 0
        this.#see(
          'tcp',
          number,
          port,
          octets,
          (message) => {
            if (!socket.destroyed) socket.write(frame(message))
          },
          () => socket.destroy(),
        )
      }
    })
  }

  #see(
    transport: 'udp' | 'tcp',
    connection: number,
    port: number,
    octets: Buffer,
    send: (octets: Uint8Array) => void,
    hangUp: () => void = () => undefined,
  ): void {
    this.seen++
    const packet = dnsPacket.decode(octets)
    const query: SeenQuery = {
      transport,
      connection,
      port,
      octets,
      packet,
      id: packet.id ?? 0,
      name: packet.questions?.[0]?.name ?? '',
      send,
      hangUp,
    }
    if (!this.forgetful) this.queries.push(query)
    this.behaviour(query, this)
  }
}

/** A message with its two octets of length. */
export function frame(message: Uint8Array): Buffer {
  const out = Buffer.alloc(2 + message.length)
  out.writeUInt16BE(message.length, 0)
  out.set(message, 2)
  return out
}

export interface QueryShape {
  readonly id?: number
  readonly type?: string
  /** Adds an OPT record with that UDP size. */
  readonly udpSize?: number
}

/** A query as a client sends it. */
export function queryFor(name: string, shape: QueryShape = {}): Buffer {
  return dnsPacket.encode({
    type: 'query',
    id: shape.id ?? 1,
    flags: dnsPacket.RECURSION_DESIRED,
    questions: [{ type: shape.type === 'AAAA' ? 'AAAA' : 'A', name }],
    ...(shape.udpSize === undefined
      ? {}
      : {
          additionals: [
            {
              type: 'OPT' as const,
              name: '.',
              udpPayloadSize: shape.udpSize,
              flags: 0,
              extendedRcode: 0,
              ednsVersion: 0,
              flag_do: false,
              options: [],
            },
          ],
        }),
  })
}
