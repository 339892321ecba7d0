// Sockets that answer from addresses which are not this host's: the listener that TPROXY hands queries to has the
// wrong port. One per family and asked port serves every asked address, because the source address goes with each
// datagram (IP_PKTINFO); it is bound to a discard address, so nothing can ever be meant for it, and takes nothing
// in. Where that port can't be had (a resolver of the host on every address) whole packets are made instead.
// docs/decisions/0011 says what was tried.

import { LRUCache } from 'lru-cache'
import type { Family } from '../../core/ip.ts'
import { UDP_RAW, UDP_REUSE_ADDRESS, UDP_SEND_ONLY, UDP_TRANSPARENT } from '../../native/udp/udp.ts'

/** What opens sockets: NativeDatagrams. */
export interface ReplyEngine {
  /** A handle, or a negative errno. */
  open(spec: {
    readonly family: Family
    readonly flags: number
    readonly octets: Uint8Array
    readonly port: number
    readonly receiveBuffer: number
  }): number
  close(handle: number): void
}

/** 192.0.0.8 (RFC 7600) and 100::1 (RFC 6666): addresses of no host. */
const DISCARD4 = Uint8Array.of(192, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
const DISCARD6 = Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
const NOWHERE = new Uint8Array(16)
const PORTS = 65_536

export class ReplySockets {
  readonly counters = {
    opened: 0,
    /** Ports for which whole packets are made. */
    raw: 0,
    /** Neither could be had; their answers are lost. */
    openFailures: 0,
  }
  readonly #engine: ReplyEngine
  readonly #handles: LRUCache<number, number>
  readonly #raw: [number, number] = [-1, -1]
  #lastKey = -1
  #lastHandle = -1

  constructor(engine: ReplyEngine, max: number) {
    this.#engine = engine
    this.#handles = new LRUCache<number, number>({
      max,
      dispose: (handle) => this.#close(handle),
    })
  }

  /** The socket that answers from `port`; a handle that is not open when there can be none. */
  handleFor(family: Family, port: number): number {
    const key = port + (family === 4 ? 0 : PORTS)
    if (key === this.#lastKey) return this.#lastHandle
    let handle = this.#handles.get(key)
    if (handle === undefined) {
      handle = this.#open(family, port)
      if (handle < 0) return 0
      this.#handles.set(key, handle)
    }
    this.#lastKey = key
    this.#lastHandle = handle
    return handle
  }

  #open(family: Family, port: number): number {
    const handle = this.#engine.open({
      family,
      flags: UDP_SEND_ONLY | UDP_TRANSPARENT | UDP_REUSE_ADDRESS,
      octets: family === 4 ? DISCARD4 : DISCARD6,
      port,
      receiveBuffer: 1,
    })
    if (handle >= 0) {
      this.counters.opened++
      return handle
    }
    this.counters.raw++
    return this.#openRaw(family)
  }

  #openRaw(family: Family): number {
    const place = family === 4 ? 0 : 1
    if (this.#raw[place] >= 0) return this.#raw[place]
    const flags = UDP_SEND_ONLY | UDP_RAW
    const handle = this.#engine.open({ family, flags, octets: NOWHERE, port: 0, receiveBuffer: 1 })
    if (handle < 0) this.counters.openFailures++
    this.#raw[place] = handle
    return handle
  }

  /** The raw sockets stay: they serve every port. */
  #close(handle: number): void {
    this.#lastKey = -1
    if (!this.#raw.includes(handle)) this.#engine.close(handle)
  }
}
