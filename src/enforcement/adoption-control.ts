// AdoptionControl lets connections live on that are older than enforcement. It lists the kernel's connections once, before the first hook
// is attached. If an endpoint exists when the daemon starts and no pinned state knows it, its listed connections continue for the time in
// `datapath.adopt-existing` (src/datapath/adoption.ts has the rules). Policy judges later connections and later endpoints at once. DNS is
// never adopted: queries have to reach the proxy, and an answer in an adopted connection would bypass the proxy.
//
// Cost: one listing, indexed by local address. `end` frees it.

import { containsPrefix, widthOf, type Family, type Prefix } from '../core/ip.ts'
import { TCP, UDP } from '../core/protocol.ts'
import type { FlowTuple } from '../datapath/adoption.ts'
import type { Datapath } from '../datapath/datapath.ts'
import type { Endpoint } from '../endpoints/registry.ts'

/** One direction of a connection that the kernel tracks. Addresses have 16 octets, IPv4 in the first 4. */
export interface TrackedTuple {
  readonly source: Uint8Array
  readonly target: Uint8Array
  readonly sourcePort: number
  readonly targetPort: number
}

/** A connection that the kernel tracks. NAT makes `reply` differ from the reverse of `original`. */
export interface TrackedFlow {
  readonly family: Family
  readonly protocol: number
  readonly original: TrackedTuple
  readonly reply: TrackedTuple
}

/** Visits every tracked connection. Returns 0, or a negative errno. */
export type FlowLister = (visit: (flow: TrackedFlow) => void) => number

export interface AdoptionControlOptions {
  readonly datapath: Pick<Datapath, 'adoption'>
  /** `datapath.adopt-existing`, in milliseconds. */
  readonly passMs: number
  /** The host's own addresses. Cgroup endpoints share them. */
  readonly nodeAddresses: readonly Prefix[]
  readonly listFlows: FlowLister
}

/** How long TCP segments without SYN are taken as part of an older connection, in milliseconds. */
const LEARN_MS = 60_000
const DNS_PORTS: ReadonlySet<number> = new Set([53, 853])
const LOOPBACKS: readonly Prefix[] = [
  { family: 4, octets: Uint8Array.of(127, ...new Uint8Array(15)), length: 8 },
  { family: 6, octets: Uint8Array.of(...new Uint8Array(15), 1), length: 128 },
]

interface Place {
  readonly address: Prefix
  readonly flows: FlowTuple[]
}

export class AdoptionControl {
  readonly counters = {
    /** Endpoints whose connections were adopted. */
    endpoints: 0,
    /** Listed connections that were adopted. */
    flows: 0,
    /** Listed connections that found no room in the datapath's table. */
    notTaken: 0,
  }
  /** The negative errno of each listing that failed. Without a listing, only TCP is adopted, by its segments without SYN. */
  readonly faults: number[] = []
  readonly #options: AdoptionControlOptions
  /** Connections as a workload behind an interface sees them, before NAT, by the workload's address. Undefined: not listed yet. */
  #outside: Map<string, Place> | undefined
  /** Connections as the host sees them, after NAT, by the host's address. */
  readonly #inside = new Map<string, Place>()
  #ended = false

  constructor(options: AdoptionControlOptions) {
    this.#options = options
  }

  /** Adopts the connections of an endpoint that exists at the start. Call this before the endpoint is put in force. */
  adopt(endpoint: Endpoint): void {
    const { datapath, passMs } = this.#options
    if (this.#ended || passMs === 0) return
    const flows = this.#flowsOf(endpoint)
    const { id, generation } = endpoint
    const learnMs = Math.min(LEARN_MS, passMs)
    const taken = datapath.adoption.adopt({ endpoint: id, generation, passMs, learnMs, flows })
    this.counters.endpoints++
    this.counters.flows += taken
    this.counters.notTaken += flows.length - taken
  }

  /** Ends adoption. An endpoint that appears after this call is enforced from its first packet. */
  end(): void {
    this.#ended = true
    this.#outside = new Map()
    this.#inside.clear()
  }

  #flowsOf({ hook, addresses }: Endpoint): readonly FlowTuple[] {
    const outside = (this.#outside ??= this.#list())
    switch (hook.kind) {
      case 'none':
        return []
      case 'cgroup':
        return flowsAt(this.#inside, [...this.#options.nodeAddresses, ...LOOPBACKS])
      case 'interface':
        return flowsAt(hook.side === 'ingress' ? outside : this.#inside, addresses)
    }
  }

  #list(): Map<string, Place> {
    const outside = new Map<string, Place>()
    const errno = this.#options.listFlows((flow) => this.#add(outside, flow))
    if (errno !== 0) this.faults.push(errno)
    return outside
  }

  #add(outside: Map<string, Place>, { family, protocol, original, reply }: TrackedFlow): void {
    if (protocol !== TCP && protocol !== UDP) return
    if (DNS_PORTS.has(original.targetPort) || DNS_PORTS.has(reply.sourcePort)) return
    const put = (places: Map<string, Place>, tuple: TrackedTuple): void =>
      addFlow(places, family, protocol, tuple)
    // At a workload's interface, NAT has not changed its packets yet. This holds for both directions of a connection.
    put(outside, original)
    put(outside, reply)
    // At a hook of the host itself, NAT has changed the packets already, in both directions.
    if (this.#isOwn(family, original.source)) put(this.#inside, turned(reply))
    if (this.#isOwn(family, reply.source)) put(this.#inside, turned(original))
  }

  /** True for an address of the host itself. */
  #isOwn(family: Family, octets: Uint8Array): boolean {
    const address = { family, octets, length: widthOf(family) }
    return [...LOOPBACKS, ...this.#options.nodeAddresses].some((own) =>
      containsPrefix(own, address),
    )
  }
}

/** Exchanges source and target of a tuple. */
function turned(tuple: TrackedTuple): TrackedTuple {
  const { source, target, sourcePort, targetPort } = tuple
  return { source: target, target: source, sourcePort: targetPort, targetPort: sourcePort }
}

/** Adds a connection, as the owner of the tuple's source address sees it. */
function addFlow(
  places: Map<string, Place>,
  family: Family,
  protocol: number,
  tuple: TrackedTuple,
): void {
  const { source: local, sourcePort: localPort, target: peer, targetPort: peerPort } = tuple
  const flow = { family, protocol, local, localPort, peer, peerPort }
  const key = keyOf(family, local)
  const known = places.get(key)
  const address = { family, octets: local, length: widthOf(family) }
  if (known === undefined) places.set(key, { address, flows: [flow] })
  else known.flows.push(flow)
}

function flowsAt(places: Map<string, Place>, prefixes: readonly Prefix[]): readonly FlowTuple[] {
  return prefixes.flatMap((prefix) => {
    const { family, octets, length } = prefix
    if (length === widthOf(family)) return places.get(keyOf(family, octets))?.flows ?? []
    return [...places.values()]
      .filter(({ address }) => address.family === family && containsPrefix(prefix, address))
      .flatMap(({ flows }) => flows)
  })
}

function keyOf(family: Family, octets: Uint8Array): string {
  return `${family} ${octets.join(',')}`
}
