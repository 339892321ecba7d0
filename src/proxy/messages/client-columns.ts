// Where a message came from and how its answer goes back, as columns of typed arrays with one row a message.
// Batches of queries and the in-flight table extend them, so an answer leaves by a row of either. Native
// sockets fill them directly. Nothing is allocated per row.

/** Values of `transports`. */
export const OVER_UDP = 0
export const OVER_TCP = 1
/**
 * Of ourselves (prewarm.ts, own-questions.ts), not of a client: `channels` is the endpoint, `ports` the protocol that it is
 * judged by (0: either), and the answer leaves by no socket.
 */
export const OF_OURS = 2

export class ClientColumns {
  /** 4 or 6. */
  readonly families: Uint8Array
  /** The client: 16 octets a row, IPv4 in the first 4, the rest zero. */
  readonly addresses: Uint8Array
  /** The same by four octets, for copies. */
  readonly addressWords: Uint32Array
  readonly ports: Uint16Array
  /** OVER_UDP, OVER_TCP or OF_OURS. */
  readonly transports: Uint8Array
  /** The UDP listener or TCP connection that the message came in on and its answer leaves by. */
  readonly channels: Uint32Array
  /** Index of the interface that it arrived on; 0 where the socket doesn't say. */
  readonly interfaces: Uint32Array
  /** The server that the client asked, as `addresses`: its answer must come from there. All zero with port 0: the socket's own. */
  readonly askedAddresses: Uint8Array
  readonly askedWords: Uint32Array
  /** 0: not known, and the socket's own address is the right one. */
  readonly askedPorts: Uint16Array

  constructor(rows: number) {
    this.families = new Uint8Array(rows)
    this.addresses = new Uint8Array(rows * 16)
    this.addressWords = wordsOf(this.addresses)
    this.ports = new Uint16Array(rows)
    this.transports = new Uint8Array(rows)
    this.channels = new Uint32Array(rows)
    this.interfaces = new Uint32Array(rows)
    this.askedAddresses = new Uint8Array(rows * 16)
    this.askedWords = wordsOf(this.askedAddresses)
    this.askedPorts = new Uint16Array(rows)
  }
}

/** Copies row `from` of `source` to row `to` of `target`. */
export function copyClient(
  source: ClientColumns,
  from: number,
  target: ClientColumns,
  to: number,
): void {
  target.families[to] = source.families[from]!
  target.ports[to] = source.ports[from]!
  target.transports[to] = source.transports[from]!
  target.channels[to] = source.channels[from]!
  target.interfaces[to] = source.interfaces[from]!
  target.askedPorts[to] = source.askedPorts[from]!
  copyAddress(source.addressWords, from, target.addressWords, to)
  copyAddress(source.askedWords, from, target.askedWords, to)
}

/** Copies the four words of one row to another. */
export function copyAddress(
  source: Uint32Array,
  from: number,
  target: Uint32Array,
  to: number,
): void {
  const a = from * 4
  const b = to * 4
  target[b] = source[a]!
  target[b + 1] = source[a + 1]!
  target[b + 2] = source[a + 2]!
  target[b + 3] = source[a + 3]!
}

/** The same memory by four octets; it must begin with a word. */
export function wordsOf(octets: Uint8Array): Uint32Array {
  return new Uint32Array(octets.buffer, octets.byteOffset, octets.length >> 2)
}
