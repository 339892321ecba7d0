// Streams on Node's own sockets: explicit mode, no addon needed. Node allocates per read and per write, and
// SO_MARK, IP_TRANSPARENT and the arrival interface are out of its reach; so modes tproxy and redirect are refused.

import { connect, type Server, type Socket } from 'node:net'
import { UnavailableError } from '../../core/errors.ts'
import { formatAddress } from '../../core/ip.ts'
import { AddressBook } from '../messages/address-book.ts'
import { codeOf } from './datagram-socket.ts'
import { FrameWriter } from '../server/frame-writer.ts'
import { listenTcp, portOf } from '../server/listen.ts'
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
    // Descriptors are for the addon; nobody gives them to Node's sockets.
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
