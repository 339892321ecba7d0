// A node without a daemon: the core that a daemon has, in memory, with policies, endpoints and resources from files in
// force. What it is asked it answers by the daemon's own code. Nothing is learned here, so a question never changes what
// the next one gets. Room is made for what is given only.

import type { Config } from '../../config/config.ts'
import { EndpointControl, type EndpointRecord } from '../../enforcement/endpoint-control.ts'
import type { CoreState } from '../../enforcement/core-state.ts'
import { explain } from '../../explain/explain.ts'
import type { Explanation, Question } from '../../explain/explanation.ts'
import type { PolicyControl } from '../../enforcement/policy-control.ts'
import { ResourceControl, type Resource } from '../../enforcement/resource-control.ts'
import { Transition } from '../../enforcement/transition.ts'
import { systemClock } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import type { Prefix } from '../../core/ip.ts'
import { makeCore, makePolicies } from '../../daemon/parts.ts'
import { openDatapath } from '../../daemon/open-datapath.ts'
import { PortResolver, portNamesOf, type PortName } from '../../policy/compile/named-ports.ts'
import type { Policy } from '../../policy/rule.ts'

/** With ports that policies may call by name. */
interface Named {
  readonly ports?: readonly PortName[]
}

export interface OfflineInput {
  readonly config: Config
  readonly policies: readonly Policy[]
  readonly endpoints: readonly (EndpointRecord & Named)[]
  readonly resources: readonly (Resource & Named)[]
  readonly nodeAddresses: readonly Prefix[]
  /** Labels of each endpoint that questions are about. */
  readonly askers: readonly (readonly string[])[]
}

const PAIRS = 16

export class OfflineNode {
  readonly core: CoreState
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl

  constructor({ endpoints, resources, nodeAddresses, ...rest }: OfflineInput) {
    const names = portNamesOf([...endpoints, ...resources].map(({ ports }) => ports ?? []))
    const policies = new PortResolver().resolve(rest.policies, names)
    const askers = [...new Map(rest.askers.map((labels) => [nameOf(labels), labels]))]
    const all = [...endpoints, ...askers.map(([name, labels]) => askerOf(name, labels))]
    const config = withRoom(rest.config, policies, all, resources)
    const datapath = openDatapath(config)
    const restored = datapath.start()
    this.core = makeCore(config, systemClock, datapath, restored, nodeAddresses)
    const { core } = this
    // Numbers are there for both families, as on a node whose endpoints have both.
    this.policies = makePolicies(config, core, [4, 6])
    const endpointsMax = all.length + 1
    const control = { core, policies: this.policies, restored, nodeAddresses, endpointsMax }
    this.endpoints = new EndpointControl(control)
    new ResourceControl({ core }).apply(resources)
    this.policies.setPolicies(policies, this.endpoints.registry)
    this.endpoints.apply(all)
    const transition = new Transition({ core, policies: this.policies })
    transition.begin()
    transition.finish()
  }

  /** What an endpoint with these labels, one of the askers, is told. */
  explain(labels: readonly string[], question: Question): Explanation {
    const asker = this.endpoints.registry.byName(nameOf(labels))
    invariant(asker !== undefined, 'questions are about endpoints that were named')
    const found = explain(this, { ...asker, audited: undefined }, question)
    invariant(found !== undefined, 'endpoints have rules')
    return found
  }
}

/** No endpoint of a file has such a name. */
function nameOf(labels: readonly string[]): string {
  return `{${[...labels].sort().join(',')}}`
}

/** Without addresses: a question may be about any there is. */
function askerOf(name: string, labels: readonly string[]): EndpointRecord {
  return { name, labels, addresses: [], hook: { kind: 'none' }, audit: false }
}

/** The config with tables for what there is, in memory. */
function withRoom(
  config: Config,
  policies: readonly Policy[],
  endpoints: readonly EndpointRecord[],
  resources: readonly Resource[],
): Config {
  const prefixes = [...endpoints, ...resources].reduce(
    (sum, { addresses }) => sum + addresses.length,
    0,
  )
  const selectors = policies
    .flatMap(({ rules }) => rules)
    .reduce((sum, { peers }) => {
      if (peers.kind === 'any') return sum
      return (
        sum +
        peers.selectors.reduce(
          (n, peer) => n + (peer.kind === 'cidr' ? 1 + peer.except.length : 1),
          0,
        )
      )
    }, 0)
  const limits = {
    ...config.limits,
    pairs: PAIRS,
    selectors: selectors + PAIRS,
    resources: prefixes,
  }
  const { adoptExistingMs } = config.datapath
  return { ...config, limits, datapath: { kind: 'memory', adoptExistingMs } }
}
