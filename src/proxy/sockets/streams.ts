// Streams has all TCP connections and listeners of the proxy. It supports every mode of listener, reports the asked server and the
// arrival interface of each connection, and sets SO_MARK on connections to servers. The addon has one engine for all streams. In a
// turn, Streams reads the engine's rows in order and calls the owners. It allocates one object per connection, and none per read
// or write.
//
// An owner can close a stream for which a later row of the turn exists. The stream's slot is then empty, and the row is skipped.
// The addon gives the slot to another stream only in a later turn.

import type { ListenerMode } from '../../config/config.ts'
import type { Clock } from '../../core/clock.ts'
import { UnavailableError } from '../../core/errors.ts'
import { invariant } from '../../core/invariant.ts'
import { formatAddress, parseAddress, type Family } from '../../core/ip.ts'
import { errnoName } from '../../native/native.ts'
import {
  LISTEN_REDIRECTED,
  LISTEN_TRANSPARENT,
  LISTEN_WANT_ASKED,
  LISTEN_WANT_INTERFACE,
  READ_MAX,
  ROW_ACCEPTED,
  ROW_CLOSED,
  ROW_DATA,
  ROW_ENDED,
  ROW_FAULT,
  ROW_TAKEN,
  ROW_WORDS,
  type TcpAddon,
} from '../../native/tcp/tcp.ts'
import { AddressBook, type PeerAddress } from '../messages/address-book.ts'
import { listenFault } from './listen-fault.ts'
import { FrameGather } from './frame-gather.ts'
import { Stream, type StreamEngine, type StreamOwner } from './stream.ts'
import type { ServerAddress } from '../upstream/server-pool.ts'

export interface StreamListen {
  readonly family: Family
  /** 16 octets. An IPv4 address is in the first 4. Zeros mean every address of the family. */
  readonly octets: Uint8Array
  /** 0: the kernel chooses a free port. */
  readonly port: number
  readonly mode: ListenerMode
  /** A socket that is already bound to this address and port, possibly in another network namespace. */
  readonly descriptor?: number | undefined
}

/** A new connection. It is valid during `accept`. */
export interface Arrival {
  readonly peer: PeerAddress
  readonly peerPort: number
  /** Index of the interface on which the connection arrived; 0 if it is not known. */
  readonly interfaceIndex: number
  /** Address of the server that the client asked, 16 octets. If `askedPort` is 0, the server is not known. */
  readonly asked: Uint8Array
  readonly askedPort: number
}

export interface StreamAcceptor {
  /** Returns the owner of a new stream, or undefined to refuse it. */
  accept(stream: Stream, arrival: Arrival): StreamOwner | undefined
  /** A connection could not be accepted, for example because of EMFILE. The listener tries again. */
  acceptFault(code: string): void
}

export interface StreamListener {
  readonly port: number
  /** The socket's descriptor, for the successor. The listener keeps it. */
  readonly descriptor: number
  /** Turns accepting on or off. While it is off, new connections wait in the kernel. */
  accepting(on: boolean): void
  close(): void
}

export interface StreamsOptions {
  readonly addon: TcpAddon
  readonly clock: Clock
  /** The largest number of open streams. Further connections wait in the kernel. */
  readonly capacity: number
  /** SO_MARK of connections to servers; 0: none. */
  readonly mark?: number
}

/** The largest number of rows in one turn. */
const ROWS = 1024
/** The number of reads of READ_MAX octets for which one turn has room. */
const READS = 64
const BACKLOG = 4096
/** Time from a lack of descriptors or memory until connections are accepted again, in milliseconds. */
const REARM_MS = 100

const FLAGS: Readonly<Record<ListenerMode, number>> = {
  explicit: 0,
  tproxy: LISTEN_TRANSPARENT | LISTEN_WANT_ASKED | LISTEN_WANT_INTERFACE,
  redirect: LISTEN_REDIRECTED | LISTEN_WANT_ASKED | LISTEN_WANT_INTERFACE,
}

export class Streams implements StreamEngine {
  readonly gather = new FrameGather()
  readonly unsent: Uint32Array
  readonly addon: TcpAddon
  readonly handle: object
  readonly #clock: Clock
  readonly #book = new AddressBook()
  readonly #mark: number
  readonly #rows = new Int32Array(ROWS * ROW_WORDS)
  readonly #slab = new Uint8Array(READS * READ_MAX)
  readonly #addresses = new Uint8Array(ROWS * 32)
  readonly #ports = new Uint16Array(ROWS * 2)
  readonly #interfaces = new Uint32Array(ROWS)
  readonly #families = new Uint8Array(ROWS)
  readonly #streams: (Stream | undefined)[]
  /** One object, which is reused for every connection. */
  readonly #arrival: { -readonly [Key in keyof Arrival]: Arrival[Key] } = {
    peer: { family: 4, octets: new Uint8Array(16), text: '' },
    peerPort: 0,
    interfaceIndex: 0,
    asked: new Uint8Array(16),
    askedPort: 0,
  }
  readonly #acceptors: (StreamAcceptor | undefined)[] = []
  /** Streams that have added frames to `gather` since it was empty. */
  #gathered: Stream[] = []
  /** The number of streams that have frames in `gather` now. */
  #gathering = 0
  #scheduled = false
  #rearming = false
  readonly #run = (): void => {
    this.#turn()
  }
  readonly #runSoon = (): void => {
    this.#scheduled = false
    this.#turn()
  }

  constructor(options: StreamsOptions) {
    const { addon, capacity } = options
    this.addon = addon
    this.#clock = options.clock
    this.#mark = options.mark ?? 0
    this.#streams = Array.from<Stream | undefined>({ length: capacity })
    this.unsent = new Uint32Array(capacity)
    const engine = addon.create(capacity, ROWS, this.#run, [
      this.#rows,
      this.#slab,
      this.#addresses,
      this.#ports,
      this.#interfaces,
      this.#families,
      this.unsent,
      this.gather.slab,
      this.gather.frames,
    ])
    if (typeof engine === 'number') {
      throw new UnavailableError(`Cannot make the TCP engine: ${errnoName(engine)}`)
    }
    this.handle = engine
  }

  /** Opens a listener. If that fails, throws UnavailableError, which names the remedy. */
  listen(options: StreamListen, acceptor: StreamAcceptor): StreamListener {
    const { addon, handle } = this
    const { family, octets, port, mode } = options
    // If this process is not allowed to mark connections to servers, fail at the start and not at the first query.
    const refused = mode === 'explicit' || this.#mark === 0 ? 0 : addon.mayMark(this.#mark)
    if (refused < 0) throw faultOf(options, errnoName(refused))
    const given = options.descriptor ?? -1
    const index = addon.listen(handle, family, octets, port, FLAGS[mode], BACKLOG, given)
    if (index < 0) throw faultOf(options, errnoName(index))
    this.#acceptors[index] = acceptor
    return {
      port: addon.portOf(handle, index),
      descriptor: addon.listenerDescriptor(handle, index),
      accepting: (on) => void addon.accepting(handle, index, on ? 1 : 0),
      close: () => {
        this.#acceptors[index] = undefined
        addon.unlisten(handle, index)
      },
    }
  }

  /**
   * Continues a connection that another daemon accepted. First it sends `unsent`, the octets that the other daemon could not send.
   * Set the stream's owner; reading begins with `resume`. On failure, closes the connection and returns undefined.
   */
  adopt(descriptor: number, unsent: Uint8Array): Stream | undefined {
    const slot = this.addon.adopt(this.handle, descriptor, unsent)
    if (slot < 0) return undefined
    const stream = new Stream(this, slot, undefined)
    this.#streams[slot] = stream
    return stream
  }

  /** Begins to connect. The caller can queue frames at once. A failure is reported as `closed`. */
  connect(server: ServerAddress, owner: StreamOwner): Stream {
    const parsed = parseAddress(server.address)
    invariant(parsed !== undefined, 'a server has a numeric address')
    const { family, octets } = parsed
    const slot = this.addon.connect(this.handle, family, octets, server.port, this.#mark)
    const stream = new Stream(this, slot, owner)
    if (slot >= 0) this.#streams[slot] = stream
    else this.#clock.soon(() => stream.broken(true))
    return stream
  }

  joined(stream: Stream): void {
    this.#gathered.push(stream)
    this.#gathering++
  }

  left(): void {
    if (--this.#gathering > 0) return
    this.#gathered = []
    this.gather.clear()
  }

  flushAll(): void {
    for (const stream of this.#gathered) stream.flush()
  }

  release(stream: Stream, reset: boolean): void {
    this.#streams[stream.slot] = undefined
    this.addon.close(this.handle, stream.slot, reset ? 1 : 0)
  }

  wantTurn(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#clock.soon(this.#runSoon)
  }

  #turn(): void {
    const result = this.addon.next(this.handle)
    if (result < 0) this.wantTurn()
    const count = result < 0 ? -1 - result : result
    const rows = this.#rows
    for (let at = 0; at < count * ROW_WORDS; at += ROW_WORDS) {
      const kind = rows[at]!
      const slot = rows[at + 1]!
      if (kind === ROW_ACCEPTED) this.#accept(at / ROW_WORDS, slot, rows[at + 2]!)
      else if (kind === ROW_FAULT) this.#shortage(slot, rows[at + 2]!)
      else this.#report(this.#streams[slot], kind, rows[at + 2]!, rows[at + 3]!)
    }
  }

  #report(stream: Stream | undefined, kind: number, a: number, b: number): void {
    if (stream === undefined) return
    switch (kind) {
      case ROW_DATA:
        stream.owner?.received(this.#slab, a, b)
        break
      case ROW_ENDED:
        stream.owner?.ended()
        break
      case ROW_TAKEN:
        stream.taken()
        break
      case ROW_CLOSED:
        stream.broken(a !== 0)
        break
    }
  }

  #accept(row: number, slot: number, listener: number): void {
    const arrival = this.#arrival
    const octets = this.#addresses
    arrival.peer = this.#book.at(this.#families[row] === 4 ? 4 : 6, octets, row * 32)
    arrival.peerPort = this.#ports[row * 2]!
    arrival.askedPort = this.#ports[row * 2 + 1]!
    arrival.interfaceIndex = this.#interfaces[row]!
    for (let i = 0; i < 16; i++) arrival.asked[i] = octets[row * 32 + 16 + i]!
    const stream = new Stream(this, slot, undefined)
    this.#streams[slot] = stream
    stream.owner = this.#acceptors[listener]?.accept(stream, arrival)
    if (stream.owner === undefined) stream.destroy()
  }

  /** Reports a lack of descriptors or memory, and accepts again after REARM_MS. Until then, connections wait in the kernel. */
  #shortage(listener: number, errno: number): void {
    this.#acceptors[listener]?.acceptFault(errnoName(errno))
    if (this.#rearming) return
    this.#rearming = true
    this.#clock.after(REARM_MS, () => {
      this.#rearming = false
      this.addon.rearm(this.handle)
    })
  }
}

function faultOf({ family, octets, port, mode }: StreamListen, code: string): UnavailableError {
  return listenFault('TCP', formatAddress(family, octets), port, code, mode)
}
