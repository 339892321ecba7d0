// Bounds that configuration may not pass (SEMANTICS 6): a configuration that needs more is refused whole and
// the one in force stays. Looked at before anything is applied.

import type { Fault, Position } from '../core/errors.ts'
import { compilePolicies, type CompileOptions } from '../policy/compile.ts'
import { defaultEgressOf } from '../policy/default-egress.ts'
import { flatten } from '../policy/flatten.ts'
import { IdentityLabels } from '../policy/identity-labels.ts'
import { indexLabels, policySelects } from '../policy/labels.ts'
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

/** What is too much; empty when the configuration fits. */
export function boundFaults(
  { policies, endpoints, resources }: Configured,
  bounds: ConfigBounds,
  compile: Omit<CompileOptions, 'originOf'>,
  identityLabels = new IdentityLabels([]),
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
  refuse(countSelectors(policies), bounds.selectors, 'selectors in all', 'limits.selectors')
  const oneTooMany = endpoints[bounds.endpoints]?.position
  refuse(endpoints.length, bounds.endpoints, 'endpoints', 'limits.endpoints', oneTooMany)
  const excess = resources[bounds.resources]?.position
  refuse(resources.length, bounds.resources, 'resources', 'limits.resources', excess)
  const prefixes = countPrefixes({ policies, endpoints, resources })
  refuse(prefixes, bounds.prefixes, 'addresses and prefixes with labels', 'limits.selectors')
  const sizes = new Map<string, number>()
  for (const endpoint of endpoints) {
    const selecting = selectingPolicies(policies, identityLabels.of(endpoint.labels))
    const defaultEgress = defaultEgressOf(endpoint.labels, compile.defaultEgress)
    const numbers = selecting.map((policy) => policies.indexOf(policy))
    const key = `${numbers.join(',')} ${defaultEgress}`
    if (sizes.has(key)) continue
    const size = entriesOf(selecting, { ...compile, defaultEgress })
    sizes.set(key, size)
    if (size <= bounds.policyEntries) continue
    const message = `endpoint ${endpoint.name} needs ${size} policy entries, limits.policy-entries allows ${bounds.policyEntries}`
    faults.push({ position: selecting[0]?.position ?? position, message })
  }
  return faults
}

function selectingPolicies(
  policies: readonly Policy[],
  labels: readonly string[],
): readonly Policy[] {
  const index = indexLabels(labels)
  return policies.filter((policy) => policySelects(policy, index))
}

function countSelectors(policies: readonly Policy[]): number {
  const rules = policies.flatMap((policy) => policy.rules)
  return rules.reduce(
    (sum, { peers }) => sum + (peers.kind === 'any' ? 0 : peers.selectors.length),
    0,
  )
}

/** Addresses and prefixes that get labels, each as often as it is named. */
export function countPrefixes({ policies, endpoints, resources }: Configured): number {
  let count = countAddresses(endpoints) + countAddresses(resources)
  for (const { rules } of policies) {
    for (const { peers } of rules) {
      if (peers.kind === 'any') continue
      for (const peer of peers.selectors) if (peer.kind === 'cidr') count += 1 + peer.except.length
    }
  }
  return count
}

function countAddresses(records: readonly Pick<EndpointRecord, 'addresses'>[]): number {
  return records.reduce((sum, { addresses }) => sum + addresses.length, 0)
}

/** Entries with one identity a selector: what configuration itself makes. */
function entriesOf(policies: readonly Policy[], options: Omit<CompileOptions, 'originOf'>): number {
  const compiled = compilePolicies(policies, { ...options, originOf: () => 0 })
  let size = 0
  for (const coverages of compiled.levels.values()) size += flatten(coverages).length
  for (const { coverages } of compiled.selectors) size += flatten(coverages).length
  return size
}
