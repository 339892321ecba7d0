// What the addon tcp.node exports, and the layout of the memory it shares with us (tcp-engine.h says the same in C).
// Functions that return numbers return a negative errno on failure. Nothing here waits.

/** Kinds of rows, `rows[4 * i]`. */
export const ROW_ACCEPTED = 1
export const ROW_DATA = 2
export const ROW_ENDED = 3
export const ROW_TAKEN = 4
export const ROW_CLOSED = 5
export const ROW_FAULT = 6
export const ROW_WORDS = 4
/** Words of a frame: offset, length, the next frame of the connection or -1. */
export const FRAME_WORDS = 3

/** Flags of `listen`. */
export const LISTEN_TRANSPARENT = 1
/** Rows of new connections name the server that was asked. */
export const LISTEN_WANT_ASKED = 2
/** They name the interface. */
export const LISTEN_WANT_INTERFACE = 4
/** The server that was asked comes from the NAT rule that sent the connection here. */
export const LISTEN_REDIRECTED = 8
export const LISTEN_REUSE_PORT = 16

/** Most octets that one row of data has; the slab must hold at least as many. */
export const READ_MAX = 16384

/** Memory shared with the addon, in the order of `enum column`. */
export type TcpColumns = readonly [
  /** ROW_WORDS a row: kind, slot, and two numbers. */
  rows: Int32Array,
  /** What was read. */
  slab: Uint8Array,
  /** Of ROW_ACCEPTED, by row: the peer and the asked server, 16 octets each. */
  addresses: Uint8Array,
  /** Likewise, two a row. */
  ports: Uint16Array,
  interfaces: Uint32Array,
  families: Uint8Array,
  /** By slot: octets that wait for the kernel. */
  unsent: Uint32Array,
  /** Frames to send. */
  out: Uint8Array,
  frames: Int32Array,
]

export interface TcpAddon {
  /** `run` is called once a turn while `next` has something and a socket is open. */
  create(capacity: number, rows: number, run: () => void, columns: TcpColumns): object | number
  /** Does a turn's work. Rows to read, or -1 - rows when there is more at once. */
  next(engine: object): number
  listen(
    engine: object,
    family: number,
    octets: Uint8Array,
    port: number,
    flags: number,
    backlog: number,
    /** A socket that is bound already, of whatever network namespace; -1: opens one. */
    given: number,
  ): number
  portOf(engine: object, listener: number): number
  unlisten(engine: object, listener: number): number
  /** Listeners that lacked descriptors or memory accept again. */
  rearm(engine: object): number
  /** Whether this process may set SO_MARK: 0, or -EPERM. */
  mayMark(mark: number): number
  /** The slot of a connection that has begun; `mark` 0: none. */
  connect(engine: object, family: number, octets: Uint8Array, port: number, mark: number): number
  /** Sends a chain of frames; the addon keeps what the kernel does not take. */
  send(engine: object, slot: number, frame: number): number
  close(engine: object, slot: number, reset: number): number
  /** 1 when `next` has something of that connection at once. */
  reading(engine: object, slot: number, on: number): number
  /** 0: connections wait in the kernel. */
  accepting(engine: object, listener: number, on: number): number
  /** Descriptors, which stay the engine's. */
  listenerDescriptor(engine: object, listener: number): number
  linkDescriptor(engine: object, slot: number): number
  /** How many octets wait for the kernel; copied as far as there is room. */
  unsentOctets(engine: object, slot: number, into: Uint8Array): number
  /** The slot of a connection that somebody else accepted, not read before `reading`; `unsent` leaves first. */
  adopt(engine: object, fd: number, unsent: Uint8Array): number
}
