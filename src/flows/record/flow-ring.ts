// The latest decisions in a ring of typed arrays: DNS queries and their outcomes, and packets that were dropped or would have been.
// Names are in a ring of octets beside it (flow-names.ts). The pipeline and the reader of datapath events write here. Costs about
// 5 MiB when full and nothing before; adding allocates nothing.

import {
  FLOW_KINDS,
  OUTCOMES,
  type ExpiredUse,
  type FlowDetails,
  type PacketFlow,
} from './flow-kinds.ts'
import { FlowNames } from './flow-names.ts'

export const FLOW_CAPACITY = 65_536
/** Words of `writeKey`. */
export const FLOW_KEY_WORDS = 10
const NO_NAMES: readonly string[] = []

const DROP = FLOW_KINDS.indexOf('drop')
const AUDIT = FLOW_KINDS.indexOf('audit')
const POLICY_LOST = FLOW_KINDS.indexOf('policy-lost')
const EXPIRED_USE = FLOW_KINDS.indexOf('expired-use')

export class FlowRing {
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

  /**
   * Calls once, when the next flow comes, which is not there yet: whoever looks at the ring from time to time may sleep until
   * then. There is one such.
   */
  onNext(run: () => void): void {
    this.#onNext = run
  }

  /** Flows ever added; the number of the next one. */
  get count(): number {
    return this.#count
  }

  /** The oldest flow that is still there. */
  get oldest(): number {
    return Math.max(0, this.#count - FLOW_CAPACITY)
  }

  /**
   * Adds a DNS decision about the wire name at `nameOffset`, in any case: it is lowered when somebody reads it. `clients`
   * has the client's 16 octets as four words from `clientAt`.
   */
  addDns(
    time: number,
    kind: number,
    outcome: number,
    endpoint: number,
    name: Uint8Array,
    nameLength: number,
    qtype: number,
    rcode: number,
    addresses: number,
    family: number,
    clients: Uint32Array,
    clientAt: number,
    reason = '',
    nameOffset = 0,
    rule = 0,
  ): void {
    const at = this.#begin(time, kind, endpoint, family)
    for (let i = 0; i < 4; i++) this.#peerWords[at * 4 + i] = clients[clientAt + i]!
    if (this.#reasons[at] !== reason) this.#reasons[at] = reason
    this.#outcomes[at] = outcome
    this.#qtypes[at] = qtype
    this.#rcodes[at] = rcode
    this.#addresses[at] = addresses
    this.#protocols[at] = 0
    this.#rules[at] = rule
    this.#asked.put(at, name, nameOffset, nameLength)
  }

  addPacket(time: number, flow: PacketFlow): void {
    const kind = FLOW_KINDS.indexOf(flow.kind)
    const at = this.#begin(time, kind, flow.endpoint, flow.family)
    this.#peers.set(flow.peer.subarray(0, 16), at * 16)
    this.#outcomes[at] = 0
    this.#asked.clear(at)
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

  /** Flow `number`, which is from `oldest` to below `count`. */
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

  /** The reason, and for packets the names of the peer. */
  detailOf(number: number): string {
    const at = number % FLOW_CAPACITY
    const reason = this.#reasons[at] ?? ''
    const names = this.#names[at] ?? NO_NAMES
    return names.length === 0 ? reason : `${reason} ${names.join(' ')}`
  }

  /**
   * Writes what makes two flows the same, but for name and detail: who, what, and the verdict. Of DNS flows the
   * client's address counts only where no endpoint is known by it. For how long a name was over does not count.
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

  /** Writes the name in lower case; gives its length, 0 without one or when it was overwritten. */
  copyName(number: number, into: Uint8Array): number {
    return this.#asked.copy(number % FLOW_CAPACITY, into)
  }

  #begin(time: number, kind: number, endpoint: number, family: number): number {
    const at = this.#count++ % FLOW_CAPACITY
    if (this.#onNext !== undefined) this.#tellNext()
    this.#times[at] = time
    this.#kinds[at] = kind
    this.#endpoints[at] = endpoint
    this.#families[at] = family
    if (this.#names[at] !== undefined) this.#names[at] = NO_NAMES
    return at
  }

  /** With nothing that a question or a packet has. */
  #beginEvent(time: number, kind: number, endpoint: number, family: number): number {
    const at = this.#begin(time, kind, endpoint, family)
    this.#peers.fill(0, at * 16, at * 16 + 16)
    this.#outcomes[at] = 0
    this.#qtypes[at] = 0
    this.#rcodes[at] = 0
    this.#rules[at] = 0
    return at
  }

  #tellNext(): void {
    const run = this.#onNext
    this.#onNext = undefined
    run?.()
  }
}
