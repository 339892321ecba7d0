// Connections older than enforcement: the model of src/datapath/ebpf/programs/adopt.h. src/datapath/adoption.ts has the rules.

import type { Clock } from '../../../../src/core/clock.ts'
import type { EndpointId, Generation } from '../../../../src/core/ids.ts'
import { formatAddress } from '../../../../src/core/ip.ts'
import { TCP } from '../../../../src/core/protocol.ts'
import type { AdoptedFlow, Adoption, FlowTuple } from '../../../../src/datapath/adoption.ts'
import type { Owner } from './connections.ts'
import { TCP_SYN, type Packet } from './packet.ts'

const FLOWS_MAX = 65_536

interface Flow {
  readonly tuple: FlowTuple
  readonly endpoint: EndpointId
  readonly generation: Generation
  readonly passUntil: number
  readonly listed: boolean
}

export interface AdoptionsOptions {
  readonly clock: Clock
  readonly flowsMax?: number
  /** Called for each connection for which the table has no room. */
  readonly onFull: () => void
}

export class Adoptions {
  readonly #options: AdoptionsOptions
  readonly #flows = new Map<string, Flow>()
  readonly #adopting = new Map<
    string,
    { readonly learnUntil: number; readonly passUntil: number }
  >()

  constructor(options: AdoptionsOptions) {
    this.#options = options
  }

  adopt({ endpoint, generation, passMs, learnMs, flows }: Adoption): number {
    const owner = { id: endpoint, generation }
    const now = this.#options.clock.now()
    for (const [key, { passUntil }] of this.#flows) if (passUntil <= now) this.#flows.delete(key)
    const passUntil = now + passMs
    this.#adopting.set(ownerKey(owner), { learnUntil: now + Math.min(learnMs, passMs), passUntil })
    return flows.filter((flow) => this.#put(owner, flow, passUntil, true)).length
  }

  /**
   * Whether a packet that policy refuses belongs to an adopted connection. `denied`: a deny rule refuses it. `begunHere`: its
   * begin was seen.
   */
  covers(owner: Owner, packet: Packet, denied: boolean, begunHere: boolean): boolean {
    const isTcp = packet.protocol === TCP
    if (packet.laterFragment || (isTcp && (packet.tcpFlags & TCP_SYN) !== 0)) return false
    const now = this.#options.clock.now()
    const flow = tupleOf(packet)
    const known = this.#flows.get(keyOf(owner, flow))
    if (known !== undefined) return now < known.passUntil && (!denied || known.listed)
    const adopting = this.#adopting.get(ownerKey(owner))
    if (!isTcp || denied || begunHere || adopting === undefined || now >= adopting.learnUntil)
      return false
    return this.#put(owner, flow, adopting.passUntil, false)
  }

  list(generationOf: (id: EndpointId) => number): readonly AdoptedFlow[] {
    const now = this.#options.clock.now()
    return [...this.#flows.values()].flatMap(({ tuple, endpoint, generation, passUntil }) => {
      const isOver = passUntil <= now || generationOf(endpoint) !== generation
      return isOver ? [] : [{ ...tuple, endpoint, leftMs: passUntil - now }]
    })
  }

  forget(owner: Owner): void {
    if (!this.#adopting.delete(ownerKey(owner))) return
    for (const [key, { endpoint, generation }] of this.#flows) {
      if (endpoint === owner.id && generation === owner.generation) this.#flows.delete(key)
    }
  }

  clear(): void {
    this.#flows.clear()
    this.#adopting.clear()
  }

  #put(owner: Owner, tuple: FlowTuple, passUntil: number, listed: boolean): boolean {
    const key = keyOf(owner, tuple)
    const { flowsMax = FLOWS_MAX, onFull } = this.#options
    if (!this.#flows.has(key) && this.#flows.size >= flowsMax) {
      onFull()
      return false
    }
    const { id: endpoint, generation } = owner
    this.#flows.set(key, { tuple, endpoint, generation, passUntil, listed })
    return true
  }
}

function tupleOf(packet: Packet): FlowTuple {
  const { family, protocol, source, sourcePort, target, targetPort } = packet
  return {
    family,
    protocol,
    local: source,
    localPort: sourcePort,
    peer: target,
    peerPort: targetPort,
  }
}

function ownerKey({ id, generation }: Owner): string {
  return `${id} ${generation}`
}

function keyOf(owner: Owner, flow: FlowTuple): string {
  const local = `${formatAddress(flow.family, flow.local)} ${flow.localPort}`
  const peer = `${formatAddress(flow.family, flow.peer)} ${flow.peerPort}`
  return `${ownerKey(owner)} ${flow.protocol} ${local} ${peer}`
}
