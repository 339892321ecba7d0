// Bounds that configuration may not pass (SEMANTICS 6): a configuration that needs more is refused whole and
// the one in force stays. Looked at before anything is applied.

import type { Fault } from '../core/errors.ts'
import { compilePolicies, type CompileOptions } from '../policy/compile.ts'
import { flatten } from '../policy/flatten.ts'
import { indexLabels, policySelects } from '../policy/labels.ts'
import type { Policy } from '../policy/rule.ts'
import type { EndpointRecord } from './endpoint-control.ts'

export interface ConfigBounds {
  readonly selectors: number
  readonly endpoints: number
  readonly resources: number
  readonly policyEntries: number
}

/** What the sources ask for. */
export interface Configured {
  readonly policies: readonly Policy[]
  readonly endpoints: readonly Pick<EndpointRecord, 'name' | 'labels'>[]
  readonly resources: readonly unknown[]
}

/** What is too much; empty when the configuration fits. */
export function boundFaults(
  { policies, endpoints, resources }: Configured,
  bounds: ConfigBounds,
  compile: Omit<CompileOptions, 'originOf'>,
): readonly Fault[] {
  const position = policies[0]?.position ?? { file: 'endpoints', line: 1, column: 1 }
  const faults: Fault[] = []
  const selectors = countSelectors(policies)
  if (selectors > bounds.selectors) {
    const message = `found ${selectors} selectors in all policies, limits.selectors allows ${bounds.selectors}`
    faults.push({ position, message })
  }
  if (endpoints.length > bounds.endpoints) {
    const message = `found ${endpoints.length} endpoints, limits.endpoints allows ${bounds.endpoints}`
    faults.push({ position, message })
  }
  if (resources.length > bounds.resources) {
    const message = `found ${resources.length} resources, limits.resources allows ${bounds.resources}`
    faults.push({ position, message })
  }
  const sizes = new Map<string, number>()
  for (const endpoint of endpoints) {
    const selecting = selectingPolicies(policies, endpoint)
    const key = selecting.map((policy) => policies.indexOf(policy)).join(',')
    if (sizes.has(key)) continue
    const size = entriesOf(selecting, compile)
    sizes.set(key, size)
    if (size <= bounds.policyEntries) continue
    const message = `endpoint ${endpoint.name} needs ${size} policy entries, limits.policy-entries allows ${bounds.policyEntries}`
    faults.push({ position: selecting[0]?.position ?? position, message })
  }
  return faults
}

function selectingPolicies(
  policies: readonly Policy[],
  endpoint: Pick<EndpointRecord, 'labels'>,
): readonly Policy[] {
  const labels = indexLabels(endpoint.labels)
  return policies.filter((policy) => policySelects(policy, labels))
}

function countSelectors(policies: readonly Policy[]): number {
  const rules = policies.flatMap((policy) => policy.rules)
  return rules.reduce(
    (sum, { peers }) => sum + (peers.kind === 'any' ? 0 : peers.selectors.length),
    0,
  )
}

/** Entries with one identity a selector: what configuration itself makes. */
function entriesOf(policies: readonly Policy[], options: Omit<CompileOptions, 'originOf'>): number {
  const compiled = compilePolicies(policies, { ...options, originOf: () => 0 })
  let size = 0
  for (const coverages of compiled.levels.values()) size += flatten(coverages).length
  for (const { coverages } of compiled.selectors) size += flatten(coverages).length
  return size
}
