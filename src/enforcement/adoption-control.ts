// Switching enforcement on cuts no running flow. Flows of endpoints that exist when the daemon starts, and that no pinned state
// knows, pass for `datapath.adopt-existing` (src/datapath/adoption.ts has the rules). Flows are listed once, before the first hook is
// attached. Later flows and later endpoints are judged at once. DNS is never adopted: queries belong to the proxy, and an answer of
// an adopted flow would bypass it.
//
// Cost: one listing, indexed by local address; freed with `end`.

import { containsPrefix, widthOf, type Family, type Prefix } from '../core/ip.ts'
import { TCP, UDP } from '../core/protocol.ts'
import type { FlowTuple } from '../datapath/adoption.ts'
import type { Datapath } from '../datapath/datapath.ts'
import type { Endpoint } from '../endpoints/registry.ts'

/** One direction of a flow that the kernel tracks; addresses are 16 octets. */
export interface TrackedTuple {
  readonly source: Uint8Array
  readonly target: Uint8Array
  readonly sourcePort: number
  readonly targetPort: number
}

/** A flow that the kernel tracks: as it began, and as its replies go (they differ where addresses are rewritten). */
export interface TrackedFlow {
  readonly family: Family
  readonly protocol: number
  readonly original: TrackedTuple
  readonly reply: TrackedTuple
}

/** Visits every flow of a family; 0, or a negative errno. */
export type FlowLister = (family: Family, visit: (flow: TrackedFlow) => void) => number

export interface AdoptionControlOptions {
  readonly datapath: Pick<Datapath, 'adoption'>
  /** `datapath.adopt-existing`, in milliseconds. */
  readonly passMs: number
  /** The host's addresses, which some endpoints share. */
  readonly nodeAddresses: readonly Prefix[]
  readonly listFlows: FlowLister
}

/** For so long, TCP segments without SYN count as part of an older connection. */
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
    /** Endpoints whose flows were spared, flows listed for them, and flows refused because the table was full. */
    endpoints: 0,
    flows: 0,
    notTaken: 0,
  }
  /** Errno of listings that failed, negative; then only TCP is spared, by its segments. */
  readonly faults: number[] = []
  readonly #in: AdoptionControlOptions
  /** By local address, as the endpoint itself sees the flow before any rewriting, and as the host does after it. */
  #outside: Map<string, Place> | undefined
  readonly #inside = new Map<string, Place>()
  #ended = false

  constructor(options: AdoptionControlOptions) {
    this.#in = options
  }

  /** Spares the flows of an endpoint that exists at the start. Call it before the endpoint is put in force. */
  adopt(endpoint: Endpoint): void {
    const { datapath, passMs } = this.#in
    if (this.#ended || passMs === 0) return
    const flows = this.#flowsOf(endpoint)
    const { id, generation } = endpoint
    const learnMs = Math.min(LEARN_MS, passMs)
    const taken = datapath.adoption.adopt({ endpoint: id, generation, passMs, learnMs, flows })
    this.counters.endpoints++
    this.counters.flows += taken
    this.counters.notTaken += flows.length - taken
  }

  /** Ends adoption: from now on no flow is older than enforcement. */
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
        return flowsAt(this.#inside, [...this.#in.nodeAddresses, ...LOOPBACKS])
      case 'interface':
        return flowsAt(hook.side === 'ingress' ? outside : this.#inside, addresses)
    }
  }

  #list(): Map<string, Place> {
    const outside = new Map<string, Place>()
    for (const family of [4, 6] as const) {
      const errno = this.#in.listFlows(family, (flow) => this.#add(outside, flow))
      if (errno !== 0) this.faults.push(errno)
    }
    return outside
  }

  #add(outside: Map<string, Place>, { family, protocol, original, reply }: TrackedFlow): void {
    if (protocol !== TCP && protocol !== UDP) return
    if (DNS_PORTS.has(original.targetPort) || DNS_PORTS.has(reply.sourcePort)) return
    const put = (places: Map<string, Place>, tuple: TrackedTuple): void =>
      addFlow(places, family, protocol, tuple)
    // At the interface of a workload its packets are not rewritten yet, whether it began or answers.
    put(outside, original)
    put(outside, reply)
    // On the host itself they have been rewritten, in both directions, when they come to a hook.
    if (this.#isOwn(family, original.source)) put(this.#inside, turned(reply))
    if (this.#isOwn(family, reply.source)) put(this.#inside, turned(original))
  }

  /** Whether it is an address of the host itself. */
  #isOwn(family: Family, octets: Uint8Array): boolean {
    const address = { family, octets, length: widthOf(family) }
    return [...LOOPBACKS, ...this.#in.nodeAddresses].some((own) => containsPrefix(own, address))
  }
}

/** The same tuple from the other end. */
function turned(tuple: TrackedTuple): TrackedTuple {
  const { source, target, sourcePort, targetPort } = tuple
  return { source: target, target: source, sourcePort: targetPort, targetPort: sourcePort }
}

/** Adds the flow as the owner of the tuple's source address sees it. */
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
