// Streams on Node's own sockets: explicit mode, no addon needed. Node allocates per read and per write, and
// SO_MARK, IP_TRANSPARENT and the arrival interface are out of its reach; so modes tproxy and redirect are refused.

import { connect, createServer, type Server, type Socket } from 'node:net'
import { UnavailableError } from '../../core/errors.ts'
import { formatAddress, type Family } from '../../core/ip.ts'
import { AddressBook } from '../messages/address-book.ts'
import { codeOf } from './datagram-socket.ts'
import { copyOctets } from '../messages/octet-store.ts'
import { listenFault } from './listen-fault.ts'
import type { ServerAddress } from '../upstream/server-pool.ts'
import type {
  Stream,
  StreamAcceptor,
  StreamListen,
  StreamListener,
  StreamOwner,
  Streams,
} from './streams.ts'

const UNKNOWN = new Uint8Array(16)

export class PortableStreams implements Streams {
  readonly native = false
  readonly #book: AddressBook

  constructor(book = new AddressBook()) {
    this.#book = book
  }

  async listen(options: StreamListen, acceptor: StreamAcceptor): Promise<StreamListener> {
    const { family, octets, port, mode } = options
    if (mode !== 'explicit') {
      throw new UnavailableError(
        `Cannot listen in mode ${mode}: native part tcp is not built: apt-get install gcc libc6-dev, then npm run build`,
      )
    }
    const server = await listenTcp(family, formatAddress(family, octets), port)
    server.on('error', (error) => acceptor.acceptFault(codeOf(error)))
    server.on('connection', (socket) => this.#accept(socket, acceptor))
    return new PortableListener(server)
  }

  adopt(): undefined {
    // Only the addon takes descriptors.
    return undefined
  }

  connect(server: ServerAddress, owner: StreamOwner): Stream {
    const stream = new PortableStream(
      connect({ host: server.address, port: server.port, noDelay: true }),
    )
    stream.own(owner)
    return stream
  }

  #accept(socket: Socket, acceptor: StreamAcceptor): void {
    const stream = new PortableStream(socket)
    const peer = this.#book.read(socket.remoteAddress ?? '')
    const arrival = { peerPort: socket.remotePort ?? 0, interfaceIndex: 0, askedPort: 0 }
    const owner =
      peer === undefined ? undefined : acceptor.accept(stream, { ...arrival, peer, asked: UNKNOWN })
    if (owner === undefined) stream.destroy()
    else stream.own(owner)
  }
}

class PortableListener implements StreamListener {
  readonly port: number
  readonly descriptor = undefined
  readonly #server: Server

  constructor(server: Server) {
    this.#server = server
    this.port = portOf(server)
  }

  accepting(): void {
    // Node accepts as long as it listens.
  }

  close(): void {
    this.#server.close()
  }
}

class PortableStream implements Stream {
  readonly descriptor = undefined
  readonly #socket: Socket
  readonly #writer = new FrameWriter()
  readonly #written = (error?: Error | null): void => {
    if (error === undefined || error === null) this.#owner?.taken()
  }
  #owner: StreamOwner | undefined
  #failed = false

  constructor(socket: Socket) {
    this.#socket = socket
    // It is followed by 'close'; without a listener it would end the process.
    socket.on('error', () => (this.#failed = true))
  }

  own(owner: StreamOwner): void {
    this.#owner = owner
    const socket = this.#socket
    socket.on('data', (chunk: Uint8Array) => this.#owner?.received(chunk, 0, chunk.length))
    socket.on('end', () => this.#owner?.ended())
    socket.on('close', () => {
      this.#owner = undefined
      owner.closed(this.#failed)
    })
  }

  get waiting(): number {
    return this.#socket.writableLength
  }

  get unsent(): number {
    return this.#writer.pending + this.#socket.writableLength
  }

  queue(octets: Uint8Array, offset: number, length: number, id: number): void {
    this.#writer.add(octets, offset, length, id)
  }

  flush(): void {
    const octets = this.#writer.take()
    if (octets !== undefined) this.#socket.write(octets, this.#written)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  finish(): boolean {
    this.flush()
    this.#socket.end()
    return false
  }

  unsentOctets(): Uint8Array {
    return new Uint8Array(0)
  }

  letGo(): void {
    this.destroy()
  }

  destroy(): void {
    this.#owner = undefined
    if (this.unsent > 0) this.#socket.resetAndDestroy()
    else this.#socket.destroy()
  }
}

/** Connections that the kernel may keep for us between two turns. */
const BACKLOG = 1024

/** A listening server whose connections may be half closed; throws UnavailableError when that's not possible. */
async function listenTcp(family: Family, address: string, port: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(listenFault('TCP', address, port, codeOf(error))))
    server.listen({ host: address, port, ipv6Only: family === 6, backlog: BACKLOG }, resolve)
  })
  server.removeAllListeners('error')
  return server
}

/** The port that a server listens on. */
function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** First size of a chunk; a busy connection's grow by doubling. */
const CHUNK_MIN = 1024
/** A bigger chunk isn't kept for the next turn: 4,096 connections hold at most 64 MiB so. */
const CHUNK_KEPT_MAX = 16 * 1024
/** Room left that is worth keeping. */
const ROOM_MIN = 256
const PREFIX = 2

/**
 * Frames for one TCP connection: the two octets of length and the message, always together (RFC 7766 8). Frames of one
 * turn are gathered and leave in one write. Memory that was given to a write is never written again, because the
 * kernel may take it later.
 */
export class FrameWriter {
  #chunk: Buffer | undefined
  /** Gathered octets are #chunk[#start, #end). */
  #start = 0
  #end = 0

  /** Octets gathered and not yet taken. */
  get pending(): number {
    return this.#end - this.#start
  }

  /** Adds a frame of `length` octets (1..65,535), with its first two octets replaced by `id`. */
  add(octets: Uint8Array, offset: number, length: number, id: number): void {
    const chunk = this.#room(PREFIX + length)
    const at = this.#end
    chunk[at] = length >> 8
    chunk[at + 1] = length & 0xff
    copyOctets(octets, offset, chunk, at + PREFIX, length)
    chunk[at + PREFIX] = id >> 8
    chunk[at + PREFIX + 1] = id & 0xff
    this.#end += PREFIX + length
  }

  /** Everything gathered, now the taker's own; undefined when there's nothing. */
  take(): Buffer | undefined {
    if (this.#chunk === undefined || this.pending === 0) return undefined
    const taken = this.#chunk.subarray(this.#start, this.#end)
    this.#start = this.#end
    const { length } = this.#chunk
    if (length - this.#end < ROOM_MIN || length > CHUNK_KEPT_MAX) this.#chunk = undefined
    return taken
  }

  #room(size: number): Buffer {
    if (this.#chunk !== undefined && this.#chunk.length - this.#end >= size) return this.#chunk
    const gathered = this.pending
    const chunk = Buffer.allocUnsafeSlow(Math.max(CHUNK_MIN, (gathered + size) * 2))
    if (this.#chunk !== undefined) this.#chunk.copy(chunk, 0, this.#start, this.#end)
    this.#chunk = chunk
    this.#start = 0
    this.#end = gathered
    return chunk
  }
}
