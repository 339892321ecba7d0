// ClientColumns stores who sent a message and how its answer is sent, as typed arrays with one row per message. MessageBatch and
// InFlightTable extend it, so an answer can be sent with a row of a batch or of the table. The UDP addon fills the arrays
// directly. A row allocates nothing.

/** Values of `transports`: OVER_UDP, OVER_TCP and OF_OURS. */
export const OVER_UDP = 0
export const OVER_TCP = 1
/**
 * A query of namegate itself (prewarm.ts, own-questions.ts). `channels` holds the endpoint. `ports` holds the protocol by which
 * policy judges the query; 0: UDP or TCP. The answer is not sent to a socket.
 */
export const OF_OURS = 2

export class ClientColumns {
  /** 4 or 6. */
  readonly families: Uint8Array
  /** The client's address: 16 octets per row. An IPv4 address is in the first 4; the rest is zero. */
  readonly addresses: Uint8Array
  /** The memory of `addresses` as 32-bit words, for fast copies. */
  readonly addressWords: Uint32Array
  readonly ports: Uint16Array
  /** OVER_UDP, OVER_TCP or OF_OURS. */
  readonly transports: Uint8Array
  /** The UDP listener or TCP connection on which the message arrived, and through which its answer is sent. */
  readonly channels: Uint32Array
  /** Index of the interface on which the message arrived; 0 if the socket does not report the interface. */
  readonly interfaces: Uint32Array
  /**
   * Address of the server that the client asked, in the format of `addresses`. The answer must have this source address.
   * If `askedPorts` is 0, all octets are zero, and the answer is sent from the socket's own address.
   */
  readonly askedAddresses: Uint8Array
  /** The memory of `askedAddresses` as 32-bit words. */
  readonly askedWords: Uint32Array
  /** Port of the server that the client asked; 0: not known. */
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

/** Copies the four words of row `from` to row `to`. */
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

/** Returns the memory of `octets` as 32-bit words. Its start must be aligned to 4 octets. */
export function wordsOf(octets: Uint8Array): Uint32Array {
  return new Uint32Array(octets.buffer, octets.byteOffset, octets.length >> 2)
}
