// Sends the queries of self-check.ts to our own UDP listeners, each from a socket of this host, and hears the answers.
// A round is over when every listener has answered; a new round gives up what the last one waits for.

import { formatAddress, type Family } from '../core/ip.ts'
import { HEADER_OCTETS, u16 } from '../dns/wire.ts'
import { DatagramSocket } from './sockets/datagram-socket.ts'
import type { SelfCheck } from './self-check.ts'

/** A listener as it is reached from this host: an address that is all zero means every one. */
export interface OwnListener {
  readonly family: Family
  readonly octets: Uint8Array
  readonly port: number
}

const NOERROR = 0
const RCODE_BITS = 15
const QR = 0x80

export class SelfQuery {
  readonly #check: Pick<SelfCheck, 'query'>
  readonly #listeners: () => readonly OwnListener[]
  readonly #sockets: (DatagramSocket | undefined)[] = []
  #round = 0
  /** Listeners that have not answered in this round. */
  #open = new Set<number>()
  #answered: () => void = () => undefined

  constructor(check: Pick<SelfCheck, 'query'>, listeners: () => readonly OwnListener[]) {
    this.#check = check
    this.#listeners = listeners
  }

  /** Begins a round; `answered` is called once when all listeners have answered it. */
  ask(answered: () => void): void {
    const listeners = this.#listeners()
    this.#round = (this.#round + 1) & 0xffff
    this.#answered = answered
    this.#open = new Set(listeners.keys())
    for (const [i, { family, octets, port }] of listeners.entries()) {
      const socket = (this.#sockets[i] ??= this.#openSocket(i, family))
      const { query } = this.#check
      socket?.sendTo(query, 0, query.length, this.#round, port, reachable(family, octets))
    }
  }

  stop(): void {
    for (const socket of this.#sockets.splice(0)) socket?.close()
  }

  #openSocket(i: number, family: Family): DatagramSocket | undefined {
    const socket = new DatagramSocket({
      family,
      onMessage: (message) => this.#received(i, message),
      // An answer that does not come is fault enough.
      onError: () => undefined,
    })
    if (socket.bind(LOOPBACK[family], 0) === undefined) {
      socket.unref()
      return socket
    }
    socket.close()
    return undefined
  }

  #received(i: number, message: Uint8Array): void {
    if (message.length < HEADER_OCTETS || u16(message, 0) !== this.#round) return
    if ((message[2]! & QR) === 0 || (message[3]! & RCODE_BITS) !== NOERROR) return
    if (!this.#open.delete(i) || this.#open.size > 0) return
    this.#answered()
  }
}

const LOOPBACK: Readonly<Record<Family, string>> = { 4: '127.0.0.1', 6: '::1' }

function reachable(family: Family, octets: Uint8Array): string {
  return octets.some((octet) => octet !== 0) ? formatAddress(family, octets) : LOOPBACK[family]
}
