// Bounds that configuration may not pass (SEMANTICS 6): a configuration that needs more is refused whole and
// the one in force stays. Looked at before anything is applied.

import type { Fault, Position } from '../core/errors.ts'
import { compilePolicies, type CompileOptions } from '../policy/compile.ts'
import { defaultEgressOf } from '../policy/default-egress.ts'
import { flatten } from '../policy/flatten.ts'
import { IdentityLabels } from '../policy/identity-labels.ts'
import { PolicyMatcher } from '../policy/policy-matcher.ts'
import type { Policy } from '../policy/rule.ts'
import type { EndpointRecord } from './endpoint-control.ts'

/** Rows for prefixes that configuration names, over and above the pairs; names can't take them. */
export function configuredPrefixesMax(limits: {
  readonly selectors: number
  readonly resources: number
}): number {
  return 2 * limits.selectors + limits.resources
}

export interface ConfigBounds {
  readonly selectors: number
  readonly endpoints: number
  readonly resources: number
  readonly policyEntries: number
  /** Prefixes with labels from configuration: rows that are kept free for them. */
  readonly prefixes: number
}

/** Where its file has it, when it is from one. */
interface Placed {
  readonly position?: Position
}

/** What the sources ask for. */
export interface Configured {
  readonly policies: readonly Policy[]
  readonly endpoints: readonly (Pick<EndpointRecord, 'name' | 'labels' | 'addresses'> & Placed)[]
  readonly resources: readonly (Pick<EndpointRecord, 'addresses'> & Placed)[]
}

/** What one policy names. */
interface Counts {
  readonly selectors: number
  readonly prefixes: number
}

/** What was found out about policies before; given again it saves doing so for what has not changed. */
export class BoundsMemo {
  readonly matcher = new PolicyMatcher()
  readonly counts = new WeakMap<Policy, Counts>()
  /** Addresses of a list of endpoints or resources, which is looked at several times in one change. */
  readonly addresses = new WeakMap<readonly object[], number>()
  /** Policy entries by what selects an endpoint and its default. */
  sizes: ReadonlyMap<string, number> = new Map()
}

/** What is too much; empty when the configuration fits. */
export function boundFaults(
  { policies, endpoints, resources }: Configured,
  bounds: ConfigBounds,
  compile: Omit<CompileOptions, 'originOf'>,
  identityLabels = new IdentityLabels([]),
  memo = new BoundsMemo(),
): readonly Fault[] {
  const position = policies[0]?.position ?? { file: 'endpoints', line: 1, column: 1 }
  const faults: Fault[] = []
  const refuse = (
    count: number,
    bound: number,
    what: string,
    key: string,
    place = position,
  ): void => {
    if (count <= bound) return
    faults.push({ position: place, message: `found ${count} ${what}, ${key} allows ${bound}` })
  }
  refuse(countSelectors(policies, memo), bounds.selectors, 'selectors in all', 'limits.selectors')
  const oneTooMany = endpoints[bounds.endpoints]?.position
  refuse(endpoints.length, bounds.endpoints, 'endpoints', 'limits.endpoints', oneTooMany)
  const excess = resources[bounds.resources]?.position
  refuse(resources.length, bounds.resources, 'resources', 'limits.resources', excess)
  const prefixes = countPrefixes({ policies, endpoints, resources }, memo)
  refuse(prefixes, bounds.prefixes, 'addresses and prefixes with labels', 'limits.selectors')
  const sizes = new Map<string, number>()
  memo.matcher.set(policies)
  for (const endpoint of endpoints) {
    const selecting = memo.matcher.selecting(identityLabels.of(endpoint.labels))
    const defaultEgress = defaultEgressOf(endpoint.labels, compile.defaultEgress)
    const key = `${selecting.key} ${defaultEgress}`
    if (sizes.has(key)) continue
    const size = memo.sizes.get(key) ?? entriesOf(selecting.policies, { ...compile, defaultEgress })
    sizes.set(key, size)
    if (size <= bounds.policyEntries) continue
    const message = `endpoint ${endpoint.name} needs ${size} policy entries, limits.policy-entries allows ${bounds.policyEntries}`
    faults.push({ position: selecting.policies[0]?.position ?? position, message })
  }
  memo.sizes = sizes
  return faults
}

function countSelectors(policies: readonly Policy[], memo: BoundsMemo): number {
  return policies.reduce((sum, policy) => sum + countsOf(policy, memo).selectors, 0)
}

/** Addresses and prefixes that get labels, each as often as it is named. */
export function countPrefixes(
  { policies, endpoints, resources }: Configured,
  memo = new BoundsMemo(),
): number {
  const known = countAddresses(endpoints, memo) + countAddresses(resources, memo)
  return policies.reduce((sum, policy) => sum + countsOf(policy, memo).prefixes, known)
}

function countsOf(policy: Policy, { counts }: BoundsMemo): Counts {
  const known = counts.get(policy)
  if (known !== undefined) return known
  let [selectors, prefixes] = [0, 0]
  for (const { peers } of policy.rules) {
    if (peers.kind === 'any') continue
    selectors += peers.selectors.length
    for (const peer of peers.selectors) {
      if (peer.kind === 'cidr') prefixes += 1 + peer.except.length
    }
  }
  const found = { selectors, prefixes }
  counts.set(policy, found)
  return found
}

function countAddresses(
  records: readonly Pick<EndpointRecord, 'addresses'>[],
  memo: BoundsMemo,
): number {
  const known = memo.addresses.get(records)
  if (known !== undefined) return known
  let count = 0
  for (const { addresses } of records) count += addresses.length
  memo.addresses.set(records, count)
  return count
}

/** Entries with one identity a selector: what configuration itself makes. */
function entriesOf(policies: readonly Policy[], options: Omit<CompileOptions, 'originOf'>): number {
  const compiled = compilePolicies(policies, { ...options, originOf: () => 0 })
  let size = 0
  for (const coverages of compiled.levels.values()) size += flatten(coverages).length
  for (const { coverages } of compiled.selectors) size += flatten(coverages).length
  return size
}
