// This file declares what the addon udp.node exports and the layout of the memory that it shares with TypeScript. udp-engine.h
// declares the same layout in C. Functions that return numbers return a negative errno on failure. No function waits. The addon
// keeps shared typed arrays from the garbage collector until `stop`.

/** Flags of a socket. */
export const UDP_LISTENER = 1
export const UDP_TRANSPARENT = 2
export const UDP_REUSE_ADDRESS = 4
/** Each datagram is received with the local address that it was sent to, and answers leave from that address. */
export const UDP_WANT_ASKED = 8
/** Each datagram is received with the address and port that it was sent to before TPROXY. */
export const UDP_WANT_ORIGINAL = 16
/** The socket receives nothing, and sends each row from its asked address and port. */
export const UDP_SEND_ONLY = 32
/** Like UDP_SEND_ONLY, but the socket sends whole IP packets. */
export const UDP_RAW = 64

/** Words that describe a new socket. */
export const SPEC_FAMILY = 0
export const SPEC_FLAGS = 1
export const SPEC_PORT = 2
/** 0: the socket is not connected. */
export const SPEC_PEER_PORT = 3
/** 0: no mark. */
export const SPEC_MARK = 4
/** Octets; 0 keeps the kernel's default. More than the kernel's maximum needs CAP_NET_ADMIN. */
export const SPEC_RECEIVE_BUFFER = 5
export const SPEC_SEND_BUFFER = 6
/** The value of the `channels` column for messages from this socket. */
export const SPEC_CHANNEL = 7
/** The descriptor plus one of a socket that is already bound, in any network namespace. 0: open a new socket. */
export const SPEC_DESCRIPTOR = 8
export const SPEC_WORDS = 9

/** Words of a row to send. */
export const ROW_HANDLE = 0
export const ROW_AREA = 1
export const ROW_OFFSET = 2
export const ROW_LENGTH = 3
/** The DNS message id, which replaces the first two octets. */
export const ROW_ID = 4
/** Which columns, and which row of them, hold the peer. Not read for a connected socket. */
export const ROW_CLIENTS = 5
export const ROW_CLIENT = 6
export const ROW_WORDS = 8
export const ROWS_MAX = 1024

/** Areas of octets. The first area holds the cells of queries, the second the cells of answers. */
export const AREA_QUERIES = 0
export const AREA_ANSWERS = 1
export const AREA_IN_FLIGHT = 2
export const AREA_COPIES = 3

/** Columns of clients. The first set belongs to the batch of queries. */
export const CLIENTS_QUERIES = 0
export const CLIENTS_IN_FLIGHT = 1
export const CLIENTS_COPIES = 2

/** Words of a report: handle, errno, datagrams dropped. */
export const REPORT_WORDS = 3
export const REPORTS_MAX = 512

/** Words of `stats`. */
export const STAT_RECEIVED = 0
export const STAT_SENT = 1
/** Received from or sent to an address that allows no reply. */
export const STAT_IGNORED = 2
export const STAT_OVERSIZED = 3
/** Not sent. */
export const STAT_DROPPED = 4
export const STAT_ERRORS = 5
/** Waiting until the kernel's send buffer has room. */
export const STAT_KEPT = 6
/** Lost in the kernel because the receive buffer was full. */
export const STAT_KERNEL_DROPS = 7
export const STAT_WORDS = 8

/** The bits of a handle that are the socket's place. The other bits change with each use of the place. */
export const HANDLE_PLACE = 0xffff

export interface UdpAddon {
  /** Returns an engine. It calls `turn` while a socket has datagrams to read, or can send again. */
  open(turn: () => void): object | number
  shareArea(engine: object, index: number, octets: readonly [Uint8Array]): void
  /** Families, addresses, ports, transports, channels, interfaces, asked addresses, asked ports. */
  shareClients(engine: object, index: number, columns: UdpClientColumns): void
  /** Offsets, lengths and truncation marks of the messages in the batch that uses area 0 and clients 0. */
  shareQueries(
    engine: object,
    zero: 0,
    columns: readonly [Uint32Array, Uint32Array, Uint8Array],
  ): void
  /** Handles, offsets and lengths. */
  shareAnswers(
    engine: object,
    zero: 0,
    columns: readonly [Uint32Array, Uint32Array, Uint32Array],
  ): void
  /** Rows and reports. */
  shareSends(engine: object, zero: 0, columns: readonly [Uint32Array, Int32Array]): void
  /** Returns a handle. Addresses have 16 octets; all zero means every address. */
  socket(engine: object, spec: Int32Array, address: Uint8Array, peer: Uint8Array): number
  close(engine: object, handle: number): number
  port(engine: object, handle: number): number
  /** Returns the descriptor, which the engine still owns. */
  descriptor(engine: object, handle: number): number
  /** With `on` 0 the socket is not read, and datagrams wait in the kernel. */
  reading(engine: object, handle: number, on: number): number
  stats(engine: object, handle: number, into: Float64Array): number
  /** Finds the sockets that have datagrams to read, and sends what full sockets kept back. */
  poll(engine: object): void
  /** Fills at most messages start..start+room-1. A cell has `stride` octets, of which `length` can be used. */
  receiveQueries(
    engine: object,
    start: number,
    room: number,
    stride: number,
    length: number,
  ): number
  receiveAnswers(engine: object, stride: number, length: number): number
  flush(engine: object, rows: number): void
  takeReports(engine: object): number
  /** Closes all sockets. The caller must not use the engine afterwards. */
  stop(engine: object): void
}

export type UdpClientColumns = readonly [
  Uint8Array,
  Uint8Array,
  Uint16Array,
  Uint8Array,
  Uint32Array,
  Uint32Array,
  Uint8Array,
  Uint16Array,
]
