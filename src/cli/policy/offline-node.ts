// An OfflineNode simulates a node, without a daemon. It is the core of a daemon in memory, where policies, endpoints and resources of files
// are in force. It answers questions with the daemon's own code. It learns nothing, so a question does not change later results. Its tables
// have room only for the given input.

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

/** The named ports of an endpoint or resource, which policies can use by name. */
interface Named {
  readonly ports?: readonly PortName[]
}

export interface OfflineInput {
  readonly config: Config
  readonly policies: readonly Policy[]
  readonly endpoints: readonly (EndpointRecord & Named)[]
  readonly resources: readonly (Resource & Named)[]
  readonly nodeAddresses: readonly Prefix[]
  /** The labels of each endpoint that a question is about. */
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
    this.core = makeCore({ config, clock: systemClock, datapath, restored, nodeAddresses })
    const { core } = this
    // Both address families are used, as on a node whose endpoints have addresses of both.
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

  /** Answers a question about an endpoint with these labels. `labels` must be among the `askers` of the input. */
  explain(labels: readonly string[], question: Question): Explanation {
    const asker = this.endpoints.registry.byName(nameOf(labels))
    invariant(asker !== undefined, 'questions are about endpoints that were named')
    const found = explain(this, { ...asker, audited: undefined }, question)
    invariant(found !== undefined, 'endpoints have rules')
    return found
  }
}

/** Returns a name for the endpoint with these labels. An endpoint of a file cannot have such a name. */
function nameOf(labels: readonly string[]): string {
  return `{${[...labels].sort().join(',')}}`
}

/** Returns an endpoint with these labels. It has no address, because a question can be about any address. */
function askerOf(name: string, labels: readonly string[]): EndpointRecord {
  return { name, labels, addresses: [], hook: { kind: 'none' }, audit: false }
}

/** Returns the config with the memory datapath, and with tables as large as the input needs. */
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
  const { adoptExistingMs, pinPath } = config.datapath
  return { ...config, limits, datapath: { kind: 'memory', adoptExistingMs, pinPath } }
}
