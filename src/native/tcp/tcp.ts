// This file declares what the addon tcp.node exports and the layout of the memory that it shares with TypeScript. tcp-engine.h
// declares the same layout in C. Functions that return numbers return a negative errno on failure. No function waits.

/** Kinds of rows, in `rows[4 * i]`. */
export const ROW_ACCEPTED = 1
export const ROW_DATA = 2
export const ROW_ENDED = 3
export const ROW_TAKEN = 4
export const ROW_CLOSED = 5
export const ROW_FAULT = 6
export const ROW_WORDS = 4
/** Words of a frame: offset, length, and the connection's next frame or -1. */
export const FRAME_WORDS = 3

/** Flags of `listen`. */
export const LISTEN_TRANSPARENT = 1
/** Rows of new connections name the server that the client asked for. */
export const LISTEN_WANT_ASKED = 2
/** Rows of new connections name the interface. */
export const LISTEN_WANT_INTERFACE = 4
/** The NAT rule that redirected the connection reports the server that the client asked for. */
export const LISTEN_REDIRECTED = 8

/** Most octets of one row of data. The slab must hold at least this many octets. */
export const READ_MAX = 16384

/** Memory shared with the addon, in the order of `enum column`. */
export type TcpColumns = readonly [
  /** ROW_WORDS for each row: kind, slot, and two numbers. */
  rows: Int32Array,
  /** Octets that were read. */
  slab: Uint8Array,
  /** Index: row of kind ROW_ACCEPTED. The peer's address and the asked server's address, 16 octets each. */
  addresses: Uint8Array,
  /** Same index: the peer's port and the asked server's port. */
  ports: Uint16Array,
  interfaces: Uint32Array,
  families: Uint8Array,
  /** Index: slot. Octets that wait for the kernel. */
  unsent: Uint32Array,
  /** Octets of the frames to send. */
  out: Uint8Array,
  frames: Int32Array,
]

export interface TcpAddon {
  /** The engine calls `run` once a turn while `next` has work and a socket is open. */
  create(capacity: number, rows: number, run: () => void, columns: TcpColumns): object | number
  /** Does the work of a turn. Returns the number of rows, or -1 minus that number if connections still wait to be served. */
  next(engine: object): number
  listen(
    engine: object,
    family: number,
    octets: Uint8Array,
    port: number,
    flags: number,
    backlog: number,
    /** A socket that is already bound, in any network namespace. -1: open a new socket. */
    given: number,
  ): number
  portOf(engine: object, listener: number): number
  unlisten(engine: object, listener: number): number
  /** Listeners that were parked for lack of descriptors or memory accept again. */
  rearm(engine: object): number
  /** Returns 0 if this process can set SO_MARK, else -EPERM. */
  mayMark(mark: number): number
  /** Returns the slot of a connection that has begun. Mark 0 means no mark. */
  connect(engine: object, family: number, octets: Uint8Array, port: number, mark: number): number
  /** Sends a chain of frames. The addon keeps what the kernel does not accept. */
  send(engine: object, slot: number, frame: number): number
  close(engine: object, slot: number, reset: number): number
  /** Returns 1 if `next` has octets of this connection at once. */
  reading(engine: object, slot: number, on: number): number
  /** With `on` 0, new connections wait in the kernel. */
  accepting(engine: object, listener: number, on: number): number
  /** Returns a descriptor, which the engine still owns. So does `linkDescriptor`. */
  listenerDescriptor(engine: object, listener: number): number
  linkDescriptor(engine: object, slot: number): number
  /** Returns how many octets wait for the kernel, and copies as many as `into` can hold. */
  unsentOctets(engine: object, slot: number, into: Uint8Array): number
  /**
   * Returns the slot of a connection that another process accepted. The connection is not read until `reading`. `unsent` is sent
   * first.
   */
  adopt(engine: object, fd: number, unsent: Uint8Array): number
}
