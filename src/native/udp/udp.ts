// What the addon udp.node exports, and the layout of the memory it shares with us (udp-engine.h says the same in C).
// Functions that return numbers return a negative errno on failure. Nothing here waits. Typed arrays that were
// shared are kept from the collector until `stop`.

/** Flags of a socket. */
export const UDP_LISTENER = 1
export const UDP_TRANSPARENT = 2
export const UDP_FREEBIND = 4
export const UDP_REUSE_ADDRESS = 8
export const UDP_REUSE_PORT = 16
/** Datagrams come with the local address that they were sent to, and answers leave from there. */
export const UDP_WANT_ASKED = 32
/** They come with the address and port that they were sent to before TPROXY. */
export const UDP_WANT_ORIGINAL = 64
/** Takes nothing in, and sends from the asked address and port of each row. */
export const UDP_SEND_ONLY = 128
/** Likewise, as whole IP packets. */
export const UDP_RAW = 256

/** Words of a socket's description. */
export const SPEC_FAMILY = 0
export const SPEC_FLAGS = 1
export const SPEC_PORT = 2
/** 0: not connected. */
export const SPEC_PEER_PORT = 3
/** 0: none. */
export const SPEC_MARK = 4
/** Octets; 0: what the kernel gives. More than its maximum needs CAP_NET_ADMIN. */
export const SPEC_RECEIVE_BUFFER = 5
export const SPEC_SEND_BUFFER = 6
/** `channels` of its messages. */
export const SPEC_CHANNEL = 7
/** One more than the descriptor of a socket that is bound already, of whatever network namespace; 0: opens one. */
export const SPEC_DESCRIPTOR = 8
export const SPEC_WORDS = 9

/** Words of a row to send. */
export const ROW_HANDLE = 0
export const ROW_AREA = 1
export const ROW_OFFSET = 2
export const ROW_LENGTH = 3
/** Replaces the first two octets. */
export const ROW_ID = 4
/** Where the peer stands; not read for a connected socket. */
export const ROW_CLIENTS = 5
export const ROW_CLIENT = 6
export const ROW_WORDS = 8
export const ROWS_MAX = 1024

/** Areas of octets. Cells of queries are in the first, of answers in the second. */
export const AREA_QUERIES = 0
export const AREA_ANSWERS = 1
export const AREA_IN_FLIGHT = 2
export const AREA_COPIES = 3

/** Columns of clients; those of queries are the first. */
export const CLIENTS_QUERIES = 0
export const CLIENTS_IN_FLIGHT = 1
export const CLIENTS_COPIES = 2

/** A piece of news: handle, errno, datagrams dropped. */
export const NEWS_WORDS = 3
export const NEWS_MAX = 512

/** Words of `stats`. */
export const STAT_RECEIVED = 0
export const STAT_SENT = 1
/** From nobody who can be answered. */
export const STAT_IGNORED = 2
export const STAT_OVERSIZED = 3
/** Not sent. */
export const STAT_DROPPED = 4
export const STAT_ERRORS = 5
/** Waiting for room in the kernel. */
export const STAT_KEPT = 6
/** Received and lost, because the socket's buffer was full. */
export const STAT_KERNEL_DROPS = 7
export const STAT_WORDS = 8

/** A socket's place in the table; the rest of a handle changes with each use of the place. */
export const HANDLE_PLACE = 0xffff

export interface UdpAddon {
  /** An engine, whose sockets call `turn` while one has something to read, or room again. */
  open(turn: () => void): object | number
  shareArea(engine: object, index: number, octets: readonly [Uint8Array]): void
  /** Families, addresses, ports, transports, channels, interfaces, asked addresses, asked ports. */
  shareClients(engine: object, index: number, columns: UdpClientColumns): void
  /** Offsets, lengths and marks of what is cut, by entry of the batch that area and clients 0 belong to. */
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
  /** Rows and news. */
  shareSends(engine: object, zero: 0, columns: readonly [Uint32Array, Int32Array]): void
  /** A handle. Addresses are 16 octets; all zero is every address. */
  socket(engine: object, spec: Int32Array, address: Uint8Array, peer: Uint8Array): number
  close(engine: object, handle: number): number
  port(engine: object, handle: number): number
  /** The descriptor, which stays the engine's. */
  descriptor(engine: object, handle: number): number
  /** 0: what comes stays in the kernel. */
  reading(engine: object, handle: number, on: number): number
  stats(engine: object, handle: number, into: Float64Array): number
  /** Looks which sockets have something, and sends what full ones kept back. */
  poll(engine: object): void
  /** Fills entries start..start+room-1 at most; a cell has `stride` octets, of which `length` may be used. */
  receiveQueries(
    engine: object,
    start: number,
    room: number,
    stride: number,
    length: number,
  ): number
  receiveAnswers(engine: object, stride: number, length: number): number
  flush(engine: object, rows: number): void
  takeNews(engine: object): number
  /** Closes all sockets. No function may be called with the engine afterwards. */
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
