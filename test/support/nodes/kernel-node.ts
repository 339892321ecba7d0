// A node over the kernel's own maps, without daemon or sockets, and the facts that a naive reading of docs/spec/semantics 2 and 3 needs.
// Names are taught and forgotten, policies change slice by slice, and both can judge any packet. It has two endpoints and a fake
// clock.

import { CoreState } from '../../../src/enforcement/core-state.ts'
import { makeLimits } from '../../../src/core/limits.ts'
import { EndpointControl } from '../../../src/enforcement/endpoint-control.ts'
import { PolicyControl } from '../../../src/enforcement/policy-control.ts'
import { ResourceControl } from '../../../src/enforcement/resource-control.ts'
import { Transition } from '../../../src/enforcement/transition.ts'
import { formatPrefix, widthOf, type Prefix } from '../../../src/core/ip.ts'
import { PORT_PROTOCOLS, SCTP, TCP, UDP } from '../../../src/core/protocol.ts'
import type { Endpoint } from '../../../src/endpoints/registry.ts'
import type { Policy } from '../../../src/policy/rule.ts'
import type { Bench } from '../../contract/bench.ts'
import { NO_PEERS } from '../../../src/datapath/memory/no-kernel.ts'
import { DatapathWrapper } from '../models/datapath-wrapper.ts'
import { FakeClock } from '../fake-clock.ts'
import { naiveVerdict, type NaiveVerdict } from '../models/naive-policy.ts'
import { hashedName, teach } from '../hashed-name.ts'
import { prefixOf } from './node.ts'
import { frame, icmp, sctp, SYN, tcp, udp, type Segment } from '../packets.ts'
import type { Random } from '../models/random.ts'
import { randomAddress, randomTargets, type Target } from '../models/random-document.ts'
import { NAMES } from '../models/random-policy.ts'
import { RESOURCE_LABELS } from '../models/random-selector.ts'

/** The seconds between two cases. Names live for some whole cases and a half. */
export const CASE_S = 100

export type DefaultEgress = 'allow' | 'audit' | 'deny'
const NODE_ADDRESSES = ['198.18.0.1', '2001:db8::fe'].map(prefixOf)
const NODE_TEXTS = NODE_ADDRESSES.map(formatPrefix)
const ENDPOINTS = [
  { name: 'a', addresses: ['198.18.0.9', '2001:db8::9'].map(prefixOf), labels: ['k8s:app=a'] },
  { name: 'b', addresses: ['198.18.1.1', '2001:db8::1:1'].map(prefixOf), labels: ['k8s:app=b'] },
]
/** One resource contains the other. The inner one inherits the labels that it does not set. */
const RESOURCES = [
  { name: 'r', addresses: ['198.18.0.16/28', '2001:db8::20/123'], labels: RESOURCE_LABELS[0] },
  { name: 'q', addresses: ['198.18.0.20/30', '2001:db8::24/128'], labels: RESOURCE_LABELS[1] },
].map(({ addresses, ...rest }) => ({ ...rest, addresses: addresses.map(prefixOf) }))
const LABELLED = [...ENDPOINTS, ...RESOURCES].flatMap(({ addresses, labels }) =>
  addresses.map((prefix) => ({ prefix, labels })),
)
const ENDPOINT_ADDRESSES = LABELLED.map(({ prefix }) => prefix)
/** The same prefixes as single addresses, because packets go to single addresses. */
const KNOWN = ENDPOINT_ADDRESSES.map((prefix) => ({ ...prefix, length: widthOf(prefix.family) }))
/** Addresses outside of all other prefixes. */
const ELSEWHERE = ['203.0.113.5', '255.255.255.255', '2001:db9::1', 'ff02::77'].map(prefixOf)

/** A packet of an endpoint, as an Ethernet frame. */
export interface Probe extends Target {
  readonly from: Endpoint
  readonly packet: Uint8Array
}

interface Taught {
  readonly name: string
  readonly address: Prefix
  /** The second at which it is forgotten. */
  until: number
}

/** Reports no open peers. Probes open connections, but the naive reading forgets names only by their time. */
class Unconnected extends DatapathWrapper {
  override get peers(): typeof NO_PEERS {
    return NO_PEERS
  }
}

export class KernelNode {
  readonly bench: Bench
  readonly random: Random
  readonly clock = new FakeClock()
  readonly core: CoreState
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl
  readonly transition: Transition
  readonly #default: DefaultEgress
  readonly #cidrMatchesKnown: boolean
  readonly #taught = new Map<string, Taught>()
  #inForce: readonly Policy[] = []
  #second = 0

  constructor(
    bench: Bench,
    random: Random,
    defaultEgress: DefaultEgress,
    dynamicIdentities = 4096,
    cidrMatchesKnown = false,
  ) {
    this.#cidrMatchesKnown = cidrMatchesKnown
    const datapath = new Unconnected(bench.datapath)
    const restored = datapath.dump()
    const nodeAddresses = NODE_ADDRESSES
    this.bench = bench
    this.random = random
    this.#default = defaultEgress
    this.core = new CoreState({
      clock: this.clock,
      datapath,
      restored,
      limits: {
        names: makeLimits({ pairs: 4096 }),
        dynamicIdentities,
        dynamicIdentitiesPerEndpoint: 4096,
        policyEntries: 16_384,
        configuredPrefixes: 1024,
      },
      graceSeconds: 0,
      learning: 'node',
      nodeAddresses,
      protectedPrefixes: [],
      cidrMatchesEndpoints: cidrMatchesKnown,
    })
    const { core } = this
    const [staticIdentitiesMax, withoutDnsRules, endpointsMax] = [1000, 'allow', 8] as const
    this.policies = new PolicyControl({ core, defaultEgress, withoutDnsRules, staticIdentitiesMax })
    const { policies } = this
    this.endpoints = new EndpointControl({ core, policies, restored, nodeAddresses, endpointsMax })
    this.transition = new Transition({ core, policies, rowsPerLook: 16 })
    policies.setPolicies([], [])
    new ResourceControl({ core }).apply(RESOURCES)
    this.endpoints.apply(
      ENDPOINTS.map(({ name, addresses, labels }, i) => {
        const hook = bench.interfaceHook(i + 1)
        return { name, addresses, labels, hook, audit: false }
      }),
    )
    this.settle()
  }

  settle(): void {
    this.transition.begin()
    this.transition.finish()
  }

  get inForce(): readonly Policy[] {
    return this.#inForce
  }

  /** Teaches an answer for some endpoint: a few addresses of one name, which other names also have. */
  teach(): void {
    const endpoint = this.random.pick([...this.endpoints.registry])
    const name = this.random.pick(NAMES)
    const question = hashedName(name)
    const seconds = this.random.below(12) * CASE_S + CASE_S / 2
    for (let i = 1 + this.random.below(3); i > 0; i--) {
      const address = randomAddress(this.random)
      const text = formatPrefix(address)
      if (NODE_TEXTS.includes(text)) continue
      teach(this.core.names, { ...address, endpoint: endpoint.id, name: question, ttl: seconds })
      const before = this.#taught.get(`${name} ${text}`)?.until ?? 0
      const until = Math.max(before, this.#second + seconds)
      this.#taught.set(`${name} ${text}`, { name, address, until })
    }
    this.core.committer.commit()
  }

  /** Advances the time, and forgets expired names. */
  pass(seconds: number): void {
    this.#second += seconds
    this.clock.advance(seconds * 1000)
    for (const [key, { until }] of this.#taught) if (until < this.#second) this.#taught.delete(key)
    while (!this.core.expiry.step(1000));
    this.core.committer.commit()
    this.core.allocator.sweep()
    if (this.core.ipcache.hasContainersChanged) this.settle()
  }

  /** Puts policies in force slice by slice. Calls `between` after every slice. */
  change(policies: readonly Policy[], between: () => void): void {
    this.#inForce = policies
    this.policies.setPolicies(policies, this.endpoints.registry)
    this.transition.begin()
    while (!this.transition.step(0)) between()
    between()
  }

  probes(policies: readonly Policy[], count: number): readonly Probe[] {
    const learned = [...this.#taught.values()].map(({ address }) => address)
    const others = [...NODE_ADDRESSES, ...KNOWN, ...ELSEWHERE]
    const known = [...learned, ...others, randomAddress(this.random), randomAddress(this.random)]
    const endpoints = [...this.endpoints.registry]
    const targets = randomTargets(this.random, policies, known, count)
    return targets.map((target) => {
      const from = this.random.pick(endpoints)
      return { ...target, from, packet: packetTo(from, target) }
    })
  }

  naive({ from, ...flow }: Probe, policies = this.#inForce): NaiveVerdict {
    const world = {
      nodeAddresses: NODE_ADDRESSES,
      endpointAddresses: ENDPOINT_ADDRESSES,
      labelled: LABELLED,
      names: [...this.#taught.values()],
      cidrMatchesKnown: this.#cidrMatchesKnown,
    }
    return naiveVerdict(world, policies, this.#default, { ...flow, labels: from.labels })
  }

  kernel({ from, packet }: Probe): 'pass' | 'drop' {
    return this.bench.judge(from.id, 'from', packet)
  }
}

/** The positions of source, destination and destination port in a frame. */
const LAYOUT = {
  4: { source: 26, target: 30, size: 4, port: 36 },
  6: { source: 22, target: 38, size: 16, port: 56 },
} as const
/** Frames by family and protocol, without addresses and port. */
const FORMS = new Map<number, Uint8Array>()

/** A first packet of an endpoint, as an Ethernet frame. */
export function packetTo(from: Endpoint, { peer, protocol, port }: Target): Uint8Array {
  const { family } = peer
  const key = family * 256 + protocol
  const zero = family === 4 ? '0.0.0.0' : '::'
  const form = FORMS.get(key) ?? frame({ source: zero, target: zero }, segmentOf(protocol))
  FORMS.set(key, form)
  const own = from.addresses.find((address) => address.family === family)
  const octets = form.slice()
  const { source, target, size, port: portAt } = LAYOUT[family]
  octets.set(own?.octets.subarray(0, size) ?? [], source)
  octets.set(peer.octets.subarray(0, size), target)
  if (PORT_PROTOCOLS.includes(protocol)) octets.set([port >> 8, port & 0xff], portAt)
  return octets
}

function segmentOf(protocol: number): Segment {
  const ports = { from: 40_000, to: 0 }
  switch (protocol) {
    case TCP:
      return tcp(ports, SYN)
    case UDP:
      return udp(ports)
    case SCTP:
      return sctp(ports)
    default:
      return protocol === 1 ? icmp(1, 8) : icmp(58, 128)
  }
}

export function formatProbe({ from, peer, protocol, port }: Probe): string {
  return `${from.name} -> ${formatPrefix(peer)} ${port}/${protocol}`
}
