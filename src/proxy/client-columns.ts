// Where a message came from and how its answer goes back, as columns of typed arrays with one row a message.
// Batches of queries and the in-flight table both have them, so whoever sends an answer takes a row of either.
// Native sockets fill them directly. Nothing is allocated per row.

/** Values of `transports`. */
export const OVER_UDP = 0
export const OVER_TCP = 1
/** Of ourselves (prewarm.ts), not of a client: `channels` is the endpoint, and the answer goes nowhere. */
export const OF_OURS = 2

export interface ClientColumns {
  /** 4 or 6. */
  readonly families: Uint8Array
  /** The client: 16 octets a row, IPv4 in the first 4, the rest zero. */
  readonly addresses: Uint8Array
  readonly ports: Uint16Array
  /** OVER_UDP, OVER_TCP or OF_OURS. */
  readonly transports: Uint8Array
  /** The UDP listener or TCP connection that the message came in on and its answer leaves by. */
  readonly channels: Uint32Array
  /** Index of the interface that it arrived on; 0 where the socket doesn't say. */
  readonly interfaces: Uint32Array
  /** The server that the client asked, as `addresses`: its answer must come from there. All zero with port 0: the socket's own. */
  readonly askedAddresses: Uint8Array
  /** 0: not known, and the socket's own address is the right one. */
  readonly askedPorts: Uint16Array
}

/** Columns for `rows` messages. */
export function makeClientColumns(rows: number): ClientColumns {
  return {
    families: new Uint8Array(rows),
    addresses: new Uint8Array(rows * 16),
    ports: new Uint16Array(rows),
    transports: new Uint8Array(rows),
    channels: new Uint32Array(rows),
    interfaces: new Uint32Array(rows),
    askedAddresses: new Uint8Array(rows * 16),
    askedPorts: new Uint16Array(rows),
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
  copyAddress(source.addresses, from, target.addresses, to)
  copyAddress(source.askedAddresses, from, target.askedAddresses, to)
}

/** Copies the 16 octets of one row to another. */
export function copyAddress(
  source: Uint8Array,
  from: number,
  target: Uint8Array,
  to: number,
): void {
  const a = from * 16
  const b = to * 16
  for (let i = 0; i < 16; i++) target[b + i] = source[a + i]!
}
