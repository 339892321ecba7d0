// ReplySockets opens the sockets for answers in mode tproxy. Such an answer must come from the address and port that the client
// asked, but the listener has another port. One socket per family and asked port serves every asked address, because each send
// sets its source address (IP_PKTINFO). The socket is bound to a discard address, so it receives no packets. If the port is in use
// (a resolver of the host on every address), a raw socket sends whole packets instead. docs/decisions/0011 lists the alternatives.

import { LRUCache } from 'lru-cache'
import type { Family } from '../../core/ip.ts'
import { UDP_RAW, UDP_REUSE_ADDRESS, UDP_SEND_ONLY, UDP_TRANSPARENT } from '../../native/udp/udp.ts'
import type { SocketEngine } from './socket-engine.ts'

type ReplyEngine = Pick<SocketEngine, 'open' | 'close'>

/** 192.0.0.8 (RFC 7600) and 100::1 (RFC 6666): addresses that no host has. */
const DISCARD4 = Uint8Array.of(192, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
const DISCARD6 = Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
const NOWHERE = new Uint8Array(16)
const PORTS = 65_536

export class ReplySockets {
  readonly counters = {
    opened: 0,
    /** How often a raw socket was used for a port, because its own socket could not be opened. */
    raw: 0,
    /** How often the raw socket could not be opened either. Answers from this port are lost. */
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

  /** Returns the handle of the socket that answers from `port`. If no socket can be opened, returns 0, which is no open handle. */
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

  /** Closes a socket. A raw socket stays open, because it serves every port. */
  #close(handle: number): void {
    this.#lastKey = -1
    if (!this.#raw.includes(handle)) this.#engine.close(handle)
  }
}
