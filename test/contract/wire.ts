// Packets of one connection, and the result of the scan of connections, for the contract suite.

import { formatAddress } from '../../src/core/ip.ts'
import { ACK, frame, SYN, tcp, udp, type Segment } from '../support/packets.ts'
import { PEER_4, POD, POD_4, type Bench } from './bench.ts'

type Verdict = 'pass' | 'drop'

/** Packets of one connection between POD:40000 and PEER:443, from each side. */
export class Wire {
  readonly #bench: Bench
  readonly #local: number
  readonly #peer: number

  constructor(bench: Bench, local = 40000, peer = 443) {
    this.#bench = bench
    this.#local = local
    this.#peer = peer
  }

  out(flags: number): Verdict {
    return this.send(tcp({ from: this.#local, to: this.#peer }, flags))
  }

  in(flags: number): void {
    this.receive(tcp({ from: this.#peer, to: this.#local }, flags))
  }

  outUdp(): Verdict {
    return this.send(udp({ from: this.#local, to: this.#peer }))
  }

  inUdp(): void {
    this.receive(udp({ from: this.#peer, to: this.#local }))
  }

  send(segment: Segment): Verdict {
    return this.#bench.judge(POD, 'from', frame({ source: POD_4, target: PEER_4 }, segment))
  }

  receive(segment: Segment): void {
    this.#bench.judge(POD, 'to', frame({ source: PEER_4, target: POD_4 }, segment))
  }

  /** A handshake that the peer begins. Returns the verdict on the endpoint's SYN-ACK. */
  accept(): Verdict {
    this.in(SYN)
    const verdict = this.out(SYN | ACK)
    this.in(ACK)
    return verdict
  }

  connect(): void {
    this.out(SYN)
    this.in(SYN | ACK)
    this.out(ACK)
  }
}

export function peersOf(bench: Bench): readonly string[] {
  const peers: string[] = []
  const scan = bench.datapath.peers.scan()
  for (let i = 0; i < 1000; i++) {
    const done = scan.next(64, (endpoint, family, peer) =>
      peers.push(`${endpoint} ${formatAddress(family, peer)}`),
    )
    if (done) return peers.sort()
  }
  throw new Error('The scan does not end')
}
