// Keeps the latest flows in a ring of typed arrays: DNS queries with their outcomes, packets that were dropped, and packets that would have
// been dropped without audit. A second ring, of octets, holds the names (flow-names.ts). The pipeline and the reader of datapath events
// write flows here. A full ring costs about 5 MiB, an empty ring nothing. Adding a flow allocates nothing.

import { commonBits } from '../../core/ip.ts'
import {
  FLOW_KINDS,
  OUTCOMES,
  type DnsFlow,
  type ExpiredUse,
  type FlowDetails,
  type FlowKind,
  type PacketFlow,
} from './flow-kinds.ts'
import { EndpointVerdicts } from './endpoint-verdicts.ts'
import { FormerEndpoints } from './former-endpoints.ts'
import { FlowNames } from './flow-names.ts'

export const FLOW_CAPACITY = 65_536
/** How many words `writeKey` writes. */
export const FLOW_KEY_WORDS = 10
const NO_NAMES: readonly string[] = []

const DROP = FLOW_KINDS.indexOf('drop')
const AUDIT = FLOW_KINDS.indexOf('audit')
const POLICY_LOST = FLOW_KINDS.indexOf('policy-lost')
const EXPIRED_USE = FLOW_KINDS.indexOf('expired-use')

export class FlowRing {
  /** Counts of all flows by endpoint, including those that the ring no longer has. */
  readonly verdicts = new EndpointVerdicts()
  /** Endpoints that are gone and have flows in the ring. */
  readonly former = new FormerEndpoints(this)
  readonly #times = new Float64Array(FLOW_CAPACITY)
  readonly #kinds = new Uint8Array(FLOW_CAPACITY)
  readonly #outcomes = new Uint8Array(FLOW_CAPACITY)
  readonly #endpoints = new Int32Array(FLOW_CAPACITY)
  readonly #qtypes = new Uint16Array(FLOW_CAPACITY)
  readonly #rcodes = new Uint16Array(FLOW_CAPACITY)
  readonly #addresses = new Uint16Array(FLOW_CAPACITY)
  readonly #families = new Uint8Array(FLOW_CAPACITY)
  readonly #peers = new Uint8Array(FLOW_CAPACITY * 16)
  readonly #peerWords = new Uint32Array(this.#peers.buffer)
  readonly #protocols = new Uint8Array(FLOW_CAPACITY)
  readonly #ports = new Uint16Array(FLOW_CAPACITY)
  readonly #identities = new Uint32Array(FLOW_CAPACITY)
  readonly #rules = new Uint32Array(FLOW_CAPACITY)
  readonly #expired = new Uint32Array(FLOW_CAPACITY)
  readonly #reasons: string[] = []
  readonly #names: (readonly string[])[] = []
  readonly #asked = new FlowNames(FLOW_CAPACITY)
  #count = 0
  #onNext: (() => void) | undefined

  /** Calls `run` once, just before the next flow is added, so that a reader can sleep until then. The ring holds one `run`. */
  onNext(run: () => void): void {
    this.#onNext = run
  }

  /** How many flows were ever added. This is the number of the next flow. */
  get count(): number {
    return this.#count
  }

  /** The number of the oldest flow that the ring still has. */
  get oldest(): number {
    return Math.max(0, this.#count - FLOW_CAPACITY)
  }

  /** Adds a DNS decision. The ring stores the name in its case; readers receive it in lower case. */
  addDns(time: number, flow: DnsFlow): void {
    const at = this.#begin(time, flow.kind, flow.endpoint, flow.family)
    const { clients, clientAt, reason } = flow
    for (let i = 0; i < 4; i++) this.#peerWords[at * 4 + i] = clients[clientAt + i]!
    if (this.#reasons[at] !== reason) this.#reasons[at] = reason
    this.#outcomes[at] = flow.outcome
    this.#qtypes[at] = flow.qtype
    this.#rcodes[at] = flow.rcode
    this.#addresses[at] = flow.addresses
    this.#protocols[at] = 0
    this.#rules[at] = flow.rule
    this.#asked.put(at, flow.wire, flow.nameAt, flow.nameLength)
  }

  addPacket(time: number, flow: PacketFlow): void {
    const kind = FLOW_KINDS.indexOf(flow.kind)
    const at = this.#begin(time, kind, flow.endpoint, flow.family)
    this.#peers.set(flow.peer.subarray(0, 16), at * 16)
    this.#outcomes[at] = 0
    const { expiredName } = flow
    if (expiredName === undefined) this.#asked.clear(at)
    else this.#asked.put(at, expiredName, 0, expiredName.length)
    this.#protocols[at] = flow.protocol
    this.#ports[at] = flow.port
    this.#identities[at] = flow.identity
    this.#rules[at] = flow.rule
    this.#names[at] = flow.names
    this.#reasons[at] = flow.reason
  }

  addPolicyLost(time: number, endpoint: number, file: string): void {
    const at = this.#beginEvent(time, POLICY_LOST, endpoint, 0)
    this.#asked.clear(at)
    this.#reasons[at] = file
  }

  addExpiredUse(time: number, use: ExpiredUse): void {
    const { endpoint, family, octets, addressAt, wire, nameAt, nameLength, expired } = use
    const at = this.#beginEvent(time, EXPIRED_USE, endpoint, family)
    const size = family === 4 ? 4 : 16
    for (let i = 0; i < size; i++) this.#peers[at * 16 + i] = octets[addressAt + i]!
    this.#asked.put(at, wire, nameAt, nameLength)
    this.#reasons[at] = ''
    this.#expired[at] = expired
  }

  /** Returns flow `number`. The number must be at least `oldest` and less than `count`. */
  get(number: number): FlowDetails {
    const at = number % FLOW_CAPACITY
    return {
      time: this.#times[at]!,
      kind: FLOW_KINDS[this.#kinds[at]!] ?? 'drop',
      endpoint: this.#endpoints[at]!,
      outcome: OUTCOMES[this.#outcomes[at]!] ?? 'none',
      name: this.#asked.format(at),
      qtype: this.#qtypes[at]!,
      rcode: this.#rcodes[at]!,
      addresses: this.#addresses[at]!,
      family: this.#families[at]!,
      peer: this.#peers.slice(at * 16, at * 16 + 16),
      protocol: this.#protocols[at]!,
      port: this.#ports[at]!,
      identity: this.#identities[at]!,
      rule: this.#rules[at]!,
      names: this.#names[at] ?? NO_NAMES,
      reason: this.#reasons[at] ?? '',
      expired: this.#expired[at]!,
    }
  }

  timeOf(number: number): number {
    return this.#times[number % FLOW_CAPACITY]!
  }

  kindOf(number: number): FlowKind {
    return FLOW_KINDS[this.#kinds[number % FLOW_CAPACITY]!] ?? 'drop'
  }

  endpointOf(number: number): number {
    return this.#endpoints[number % FLOW_CAPACITY]!
  }

  familyOf(number: number): number {
    return this.#families[number % FLOW_CAPACITY]!
  }

  protocolOf(number: number): number {
    return this.#protocols[number % FLOW_CAPACITY]!
  }

  /** Returns the port of a packet. For other flows the result has no meaning. */
  portOf(number: number): number {
    return this.#ports[number % FLOW_CAPACITY]!
  }

  /** Returns the names of the peer of a packet. */
  namesOf(number: number): readonly string[] {
    return this.#names[number % FLOW_CAPACITY] ?? NO_NAMES
  }

  /** Returns how many leading bits the peer's or client's address has in common with 16 other octets, at most `limit`. */
  peerBits(number: number, octets: Uint8Array, limit: number): number {
    return commonBits(this.#peers, (number % FLOW_CAPACITY) * 16, octets, 0, limit)
  }

  /** Returns the reason. For packets, the names of the peer follow. */
  detailOf(number: number): string {
    const at = number % FLOW_CAPACITY
    const reason = this.#reasons[at] ?? ''
    const names = this.#names[at] ?? NO_NAMES
    return names.length === 0 ? reason : `${reason} ${names.join(' ')}`
  }

  /**
   * Writes the key that equal flows share: endpoint, question or packet, and verdict. Name and detail are not in the key, and neither is
   * the time since the TTL of an expired use. The client's address of a DNS flow is in the key only if no endpoint has this address.
   */
  writeKey(number: number, words: Uint32Array): void {
    const at = number % FLOW_CAPACITY
    const kind = this.#kinds[at]!
    const isPacket = kind === DROP || kind === AUDIT
    const endpoint = this.#endpoints[at]!
    const withPeer = isPacket || endpoint === 0 || kind === EXPIRED_USE
    words[0] = kind | (this.#outcomes[at]! << 8) | ((withPeer ? this.#families[at]! : 0) << 16)
    words[1] = endpoint
    words[2] = isPacket ? this.#protocols[at]! : this.#qtypes[at]!
    words[3] = isPacket ? this.#ports[at]! : this.#rcodes[at]!
    words[4] = isPacket ? this.#identities[at]! : 0
    words[5] = this.#rules[at]!
    for (let i = 0; i < 4; i++) words[6 + i] = withPeer ? this.#peerWords[at * 4 + i]! : 0
  }

  /** Writes the name in lower case and returns its length. Returns 0 for a flow without a name and for an overwritten name. */
  copyName(number: number, into: Uint8Array): number {
    return this.#asked.copy(number % FLOW_CAPACITY, into)
  }

  #begin(time: number, kind: number, endpoint: number, family: number): number {
    const at = this.#count++ % FLOW_CAPACITY
    if (this.#onNext !== undefined) this.#wakeReader()
    this.verdicts.add(kind, endpoint)
    this.#times[at] = time
    this.#kinds[at] = kind
    this.#endpoints[at] = endpoint
    this.#families[at] = family
    if (this.#names[at] !== undefined) this.#names[at] = NO_NAMES
    return at
  }

  /** Begins a flow that has neither a question nor a packet. */
  #beginEvent(time: number, kind: number, endpoint: number, family: number): number {
    const at = this.#begin(time, kind, endpoint, family)
    this.#peers.fill(0, at * 16, at * 16 + 16)
    this.#outcomes[at] = 0
    this.#qtypes[at] = 0
    this.#rcodes[at] = 0
    this.#rules[at] = 0
    return at
  }

  #wakeReader(): void {
    const run = this.#onNext
    this.#onNext = undefined
    run?.()
  }
}
