// The sockets of the run, all on loopback: clients over UDP and TCP, and the server over both. This file does not know DNS.

import { createSocket, type RemoteInfo, type Socket as DatagramSocket } from 'node:dgram'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { FrameReader } from '../../../src/dns/framing.ts'
import { frame } from '../../support/peers/upstream.ts'
import type { Channel, Client, Pending } from './ledger.ts'
import { ADDRESS_OF, type Who } from './world.ts'

const LOOPBACK = '127.0.0.1'
const RECEIVE_BUFFER = 4 << 20

function openUdp(): DatagramSocket {
  return createSocket({
    type: 'udp4',
    recvBufferSize: RECEIVE_BUFFER,
    // Addresses are numeric. A look-up that answers at once keeps sends in order.
    lookup: (hostname, _options, done) => done(null, hostname, 4),
  })
}

async function bind(socket: DatagramSocket, address: string, port = 0): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.bind(port, address, () => {
      socket.removeListener('error', reject)
      resolve()
    })
  })
}

/** Calls back with each message of a stream of frames. */
function readFrames(socket: Socket, onMessage: (octets: Uint8Array) => void): void {
  const reader = new FrameReader()
  socket.on('data', (chunk: Uint8Array) => {
    reader.push(chunk)
    while (reader.next()) {
      const { buffer, offset, length } = reader
      onMessage(Uint8Array.from(buffer.subarray(offset, offset + length)))
    }
  })
}

export class UdpAsker implements Client {
  readonly overTcp = false
  readonly waiting = new Map<number, Pending>()
  readonly who: Who
  readonly #socket = openUdp()
  readonly #port: number

  constructor(who: Who, port: number) {
    this.who = who
    this.#port = port
  }

  /** A reply from any other address or port than the asked one becomes an empty message. */
  async start(onReply: (client: Client, octets: Uint8Array) => void): Promise<void> {
    await bind(this.#socket, ADDRESS_OF[this.who])
    this.#socket.on('message', (octets, { address, port }) => {
      const right = address === LOOPBACK && port === this.#port
      onReply(this, right ? octets : new Uint8Array(0))
    })
  }

  send(octets: Uint8Array): void {
    this.#socket.send(octets, this.#port, LOOPBACK)
  }

  stop(): void {
    this.#socket.close()
  }
}

/** After so many queries, the client leaves a connection in the middle of a frame for a new one. */
const TCP_QUERIES = 500

export class TcpAsker implements Client {
  readonly overTcp = true
  readonly waiting = new Map<number, Pending>()
  readonly who: Who
  /** Called when a connection ended while replies were due. */
  onLost: () => void = () => undefined
  readonly #port: number
  readonly #open = new Set<Socket>()
  #onReply: (client: Client, octets: Uint8Array) => void = () => undefined
  #socket: Socket
  #sent = 0

  constructor(who: Who, port: number) {
    this.who = who
    this.#port = port
    this.#socket = this.#connect()
  }

  start(onReply: (client: Client, octets: Uint8Array) => void): void {
    this.#onReply = onReply
  }

  send(octets: Uint8Array): void {
    this.#sent++
    this.#socket.write(frame(octets))
  }

  /** Leaves the connection if it has carried enough queries and no reply is due. */
  renew(): void {
    if (this.#sent < TCP_QUERIES || this.waiting.size > 0) return
    this.#socket.end(Uint8Array.of(0, 40, 1, 2, 3))
    this.#socket = this.#connect()
    this.#sent = 0
  }

  stop(): void {
    for (const socket of this.#open) socket.destroy()
  }

  #connect(): Socket {
    const localAddress = ADDRESS_OF[this.who]
    const socket = connect({ port: this.#port, host: LOOPBACK, localAddress, noDelay: true })
    this.#open.add(socket)
    readFrames(socket, (octets) => this.#onReply(this, octets))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#open.delete(socket)
      if (socket === this.#socket && this.waiting.size > 0) this.onLost()
    })
    return socket
  }
}

class UdpChannel implements Channel {
  readonly overTcp = false
  readonly waits = new Map<number, Pending>()
  readonly port: number
  readonly #socket: DatagramSocket

  constructor(socket: DatagramSocket, port: number) {
    this.#socket = socket
    this.port = port
  }

  send(octets: Uint8Array): void {
    this.#socket.send(octets, this.port, LOOPBACK)
  }
}

class TcpChannel implements Channel {
  readonly overTcp = true
  readonly waits = new Map<number, Pending>()
  ended = false
  readonly #socket: Socket

  constructor(socket: Socket) {
    this.#socket = socket
  }

  send(octets: Uint8Array): void {
    if (!this.ended) this.#socket.write(frame(octets))
  }

  /** Sends half a frame and FIN. Earlier messages still arrive. */
  hangUp(): void {
    this.ended = true
    this.waits.clear()
    this.#socket.end(Uint8Array.of(2, 0, 9, 9))
  }
}

/** The most remembered ports of the daemon: several times its sockets at one time. */
const CHANNELS_MAX = 256

export class Server53 {
  onQuery: (channel: Channel, octets: Uint8Array) => void = () => undefined
  /** Called when the daemon has closed a connection that was ended here. */
  onHungUp: () => void = () => undefined
  readonly #udp = openUdp()
  /** Sends from a port that the daemon did not ask. */
  readonly #elsewhere = openUdp()
  readonly #tcp: Server
  readonly #sockets = new Set<Socket>()
  readonly #byPort = new Map<number, UdpChannel>()
  #newest: TcpChannel | undefined
  #port = 0

  constructor() {
    this.#tcp = createServer((socket) => this.#accept(socket))
    this.#udp.on('message', (octets, from) => this.onQuery(this.#channelOf(from), octets))
  }

  get port(): number {
    return this.#port
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#tcp.once('error', reject)
      this.#tcp.listen(0, LOOPBACK, resolve)
    })
    const address: AddressInfo | string | null = this.#tcp.address()
    this.#port = typeof address === 'object' && address !== null ? address.port : 0
    await bind(this.#udp, LOOPBACK, this.#port)
    await bind(this.#elsewhere, LOOPBACK)
  }

  /** Sends to the daemon's socket from another port than the server's. */
  sendFromElsewhere(channel: Channel, octets: Uint8Array): void {
    if (channel instanceof UdpChannel) this.#elsewhere.send(octets, channel.port, LOOPBACK)
  }

  /** Ends the newest connection in the middle of a frame. Returns false if there is none. */
  hangUp(): boolean {
    if (this.#newest === undefined) return false
    this.#newest.hangUp()
    this.#newest = undefined
    return true
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#tcp.close()
    this.#udp.close()
    this.#elsewhere.close()
  }

  #channelOf({ port }: RemoteInfo): UdpChannel {
    const known = this.#byPort.get(port)
    if (known !== undefined) return known
    const channel = new UdpChannel(this.#udp, port)
    this.#byPort.set(port, channel)
    if (this.#byPort.size > CHANNELS_MAX) {
      for (const [oldest, { waits }] of this.#byPort) {
        if (waits.size === 0 && oldest !== port) {
          this.#byPort.delete(oldest)
          break
        }
      }
    }
    return channel
  }

  #accept(socket: Socket): void {
    const channel = new TcpChannel(socket)
    this.#newest = channel
    this.#sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#sockets.delete(socket)
      if (this.#newest === channel) this.#newest = undefined
      if (channel.ended) this.onHungUp()
    })
    readFrames(socket, (octets) => {
      if (!channel.ended) this.onQuery(channel, octets)
    })
  }
}
