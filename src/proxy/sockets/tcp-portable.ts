// PortableStreams implements Streams with Node's sockets, without the native part. Node allocates memory per read and per write. It
// cannot set SO_MARK or IP_TRANSPARENT, or report the arrival interface, so PortableStreams refuses modes tproxy and redirect.

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
    // Only native sockets can continue a connection from its descriptor.
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
    // Node accepts connections as long as it listens.
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
    // Node emits 'close' after 'error'. Without a listener, 'error' would end the process.
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

/** The largest number of connections that the kernel keeps until they are accepted. */
const BACKLOG = 1024

/** Returns a listening server whose connections can be half closed. If that fails, throws UnavailableError. */
async function listenTcp(family: Family, address: string, port: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(listenFault('TCP', address, port, codeOf(error))))
    server.listen({ host: address, port, ipv6Only: family === 6, backlog: BACKLOG }, resolve)
  })
  server.removeAllListeners('error')
  return server
}

/** Returns the port on which a server listens. */
function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Octets of the first chunk. The chunks of a busy connection are larger. */
const CHUNK_MIN = 1024
/** A chunk with more octets is not kept for the next turn, so 4,096 connections hold at most 64 MiB. */
const CHUNK_KEPT_MAX = 16 * 1024
/** A chunk is kept only if it has at least this much room left, in octets. */
const ROOM_MIN = 256
const PREFIX = 2

/**
 * FrameWriter gathers the frames that one TCP connection sends in a turn, for one write. A frame is the two octets of length and
 * the message, always together (RFC 7766 8). FrameWriter never writes to memory that it gave to a write, because Node can send
 * this memory later.
 */
export class FrameWriter {
  #chunk: Buffer | undefined
  /** The gathered octets are #chunk[#start, #end). */
  #start = 0
  #end = 0

  /** The number of gathered octets. */
  get pending(): number {
    return this.#end - this.#start
  }

  /** Adds a frame of `length` octets (1..65,535), with `id` as the first two octets. */
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

  /** Returns all gathered octets, or undefined if there are none. The octets belong to the caller. */
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
