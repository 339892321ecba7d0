// The world of the policy examples, over any datapath: pods of three namespaces, a resource, a node, and addresses outside. Each example
// has a world of its own. The datapath judges its packets, and the proxy's rules judge its questions.

import assert from 'node:assert/strict'
import { CoreState } from '../../../src/enforcement/core-state.ts'
import { makeLimits } from '../../../src/core/limits.ts'
import { EndpointControl } from '../../../src/enforcement/endpoint-control.ts'
import { PolicyControl } from '../../../src/enforcement/policy-control.ts'
import { ResourceControl } from '../../../src/enforcement/resource-control.ts'
import { Transition } from '../../../src/enforcement/transition.ts'
import { formatFault } from '../../../src/core/errors.ts'
import { UDP } from '../../../src/core/protocol.ts'
import { MAY_ASK } from '../../../src/enforcement/dns-verdicts.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import { PortResolver, portNamesOf } from '../../../src/policy/compile/named-ports.ts'
import type { Policy } from '../../../src/policy/rule.ts'
import type { Bench } from '../../contract/bench.ts'
import { FakeClock } from '../fake-clock.ts'
import { packetTo } from './kernel-node.ts'
import { hashedName, teach } from '../hashed-name.ts'
import { prefixOf, wireOf } from './node.ts'

const NAMESPACE = 'k8s:io.kubernetes.pod.namespace'
const NODE = ['192.0.2.9', '2001:db8::9'].map(prefixOf)
const PODS = [
  { name: 'front', addresses: ['10.200.0.1', 'fd00:200::1'], labels: ['k8s:role=front'] },
  { name: 'db', addresses: ['10.200.0.3'], labels: ['k8s:role=db'] },
  { name: 'back', addresses: ['10.200.0.2'], labels: ['k8s:role=back'] },
  {
    name: 'other-back',
    addresses: ['10.200.1.2'],
    labels: ['k8s:role=back', `${NAMESPACE}=other`],
  },
  {
    name: 'dns',
    addresses: ['10.200.2.2'],
    labels: ['k8s:k8s-app=kube-dns', `${NAMESPACE}=kube-system`],
  },
].map((pod) => ({ ...pod, addresses: pod.addresses.map(prefixOf) }))
const LAKE = { name: 'lake', addresses: [prefixOf('10.9.0.0/24')], labels: ['external:app=lake'] }
const PORTS = portNamesOf([[{ name: 'pg', protocol: 6, port: 5432 }]])
/** Names of peers. Any other text is an address. */
const PEERS: ReadonlyMap<string, string> = new Map([
  ['host', '192.0.2.9'],
  ['lake', '10.9.0.77'],
  ['front', '10.200.0.1'],
  ['db', '10.200.0.3'],
  ['back', '10.200.0.2'],
  ['other-back', '10.200.1.2'],
  ['dns', '10.200.2.2'],
])

export class ExampleNode {
  readonly #bench: Bench
  readonly #core: CoreState
  readonly #policies: PolicyControl
  readonly #endpoints: EndpointControl
  readonly #transition: Transition

  constructor(bench: Bench) {
    const { datapath } = bench
    const restored = datapath.dump()
    const limits = {
      names: makeLimits({ pairs: 256 }),
      dynamicIdentities: 256,
      dynamicIdentitiesPerEndpoint: 256,
      policyEntries: 4096,
      configuredPrefixes: 256,
    }
    const own = { nodeAddresses: NODE, protectedPrefixes: [], restored, datapath, limits }
    const core = new CoreState({
      ...own,
      clock: new FakeClock(),
      graceSeconds: 0,
      learning: 'node',
    })
    this.#bench = bench
    this.#core = core
    this.#policies = new PolicyControl({
      core,
      defaultEgress: 'allow',
      withoutDnsRules: 'allow',
      staticIdentitiesMax: 1000,
    })
    const policies = this.#policies
    this.#endpoints = new EndpointControl({
      core,
      policies,
      restored,
      nodeAddresses: NODE,
      endpointsMax: 16,
    })
    this.#transition = new Transition({ core, policies })
    new ResourceControl({ core }).apply([LAKE])
    this.#policies.setPolicies([], [])
    this.#endpoints.apply(
      PODS.map((pod, i) => {
        const hook = i < 2 ? bench.interfaceHook(i + 1) : ({ kind: 'none' } as const)
        return { ...pod, hook, audit: false }
      }),
    )
    this.#settle()
  }

  /** Puts the policies of a text in force. */
  apply(text: string): void {
    const { policies, faults } = loadPolicies(text, 'example.yaml')
    assert.deepEqual(faults.map(formatFault), [], text)
    this.#set(new PortResolver().resolve(policies, PORTS))
  }

  learn(from: string, name: string, addresses: readonly string[]): void {
    const question = hashedName(name)
    const { id } = this.#endpoint(from)
    for (const { family, octets } of addresses.map(prefixOf)) {
      teach(this.#core.names, { endpoint: id, name: question, family, octets, ttl: 300 })
    }
    this.#core.committer.commit()
  }

  /** The verdict on a first packet. `to` is `PEER PORT/PROTOCOL`. */
  judge(from: string, to: string): 'pass' | 'drop' {
    const [peer = '', place = ''] = to.split(' ')
    const [port = NaN, protocol = NaN] = place.split('/').map(Number)
    const sender = this.#endpoint(from)
    const target = { peer: prefixOf(PEERS.get(peer) ?? peer), port, protocol }
    return this.#bench.judge(sender.id, 'from', packetTo(sender, target))
  }

  mayAsk(from: string, name: string): boolean {
    const { id } = this.#endpoint(from)
    return this.#policies.dnsVerdicts.judge(id, UDP, wireOf(name), 0) === MAY_ASK
  }

  #set(policies: readonly Policy[]): void {
    this.#policies.setPolicies(policies, this.#endpoints.registry)
    this.#settle()
  }

  #settle(): void {
    this.#transition.begin()
    this.#transition.finish()
  }

  #endpoint(name: string) {
    return this.#endpoints.registry.byName(name) ?? assert.fail(`no endpoint ${name}`)
  }
}
