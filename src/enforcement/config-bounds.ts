// `boundFaults` compares configuration with its bounds (docs/spec/semantics 6) before anything is applied. If a configuration needs more
// than a bound allows, namegate refuses the whole configuration and keeps the one in force. A fault names a place that changed, if one is
// known, because the configuration in force did fit.

import type { Fault, Position } from '../core/errors.ts'
import { RunningSum } from '../core/tables/list-difference.ts'
import { compileEntries, type CompileOptions } from '../policy/compile/compile.ts'
import { defaultEgressOf } from '../policy/compile/default-egress.ts'
import { flatten, type Coverage } from '../policy/compile/flatten.ts'
import { evaluate } from '../policy/compile/tiers.ts'
import { IdentityLabels } from '../policy/identity-labels.ts'
import { PolicyMatcher } from '../policy/match/policy-matcher.ts'
import type { Policy } from '../policy/rule.ts'
import type { EndpointRecord } from './endpoint-control.ts'

/** How many prefixes configuration can name. Learned names cannot use the room that is reserved for these prefixes. */
export function configuredPrefixesMax(limits: {
  readonly selectors: number
  readonly resources: number
}): number {
  return 2 * limits.selectors + limits.resources
}

/** The room of the prefix table besides learned addresses: for configuration, and for pods of other nodes if namegate reads them. */
export function givenPrefixesMax({ limits, kubernetes }: PrefixSettings): number {
  const peers = kubernetes?.peers === 'watch' ? ADDRESSES_PER_PEER * limits.peers : 0
  return configuredPrefixesMax(limits) + peers
}

interface PrefixSettings {
  readonly limits: {
    readonly selectors: number
    readonly resources: number
    readonly peers: number
  }
  readonly kubernetes?: { readonly peers: 'none' | 'watch' } | undefined
}

/** A pod has at most one address of each family. */
const ADDRESSES_PER_PEER = 2

/** The bounds of configuration, from the keys under `limits`. */
export interface ConfigBounds {
  readonly selectors: number
  readonly endpoints: number
  readonly resources: number
  readonly policyEntries: number
  /** Prefixes that get labels from configuration (`configuredPrefixesMax`). */
  readonly prefixes: number
}

type Addressed = Pick<EndpointRecord, 'addresses'>

/** What the sources configure. */
export interface Configured {
  /** Absent: every file is new. */
  readonly isNew?: IsNew
  readonly policies: readonly Policy[]
  readonly endpoints: readonly (Pick<EndpointRecord, 'name' | 'labels' | 'addresses'> & Placed)[]
  readonly resources: readonly (Addressed & Placed)[]
}

/** How many selectors and prefixes a policy names. */
interface Counts {
  readonly selectors: number
  readonly prefixes: number
}

/** Keeps results of the last check, so that the next check works only on what changed. */
export class BoundsMemo {
  readonly matcher = new PolicyMatcher()
  #counts: Counts = { selectors: 0, prefixes: 0 }
  /** How many addresses all endpoints have. */
  readonly endpointAddresses = new RunningSum<Addressed>(addressesOf)
  /** How many addresses all resources have. */
  readonly resourceAddresses = new RunningSum<Addressed>(addressesOf)
  /** The number of policy entries. The key joins the policies that select an endpoint and the endpoint's default. */
  sizes: ReadonlyMap<string, number> = new Map()

  /** Sets the policies. Returns how many selectors and prefixes they name together. */
  setPolicies(policies: readonly Policy[]): Counts {
    const { added, removed } = this.matcher.set(policies)
    let { selectors, prefixes } = this.#counts
    for (const [each, sign] of [...signed(added, 1), ...signed(removed, -1)]) {
      const counts = countsOf(each)
      selectors += sign * counts.selectors
      prefixes += sign * counts.prefixes
    }
    this.#counts = { selectors, prefixes }
    return this.#counts
  }
}

function signed(policies: readonly Policy[], sign: 1 | -1) {
  return policies.map((policy) => [policy, sign] as const)
}

/** The place of a record that no file has. */
const NOWHERE: Position = { file: 'endpoints', line: 1, column: 1 }

/** Returns one fault for each bound that the configuration exceeds. An empty list means that the configuration fits. */
export function boundFaults(
  { policies, endpoints, resources, isNew = () => true }: Configured,
  bounds: ConfigBounds,
  compile: Pick<CompileOptions, 'defaultEgress'>,
  identityLabels = new IdentityLabels([]),
  memo = new BoundsMemo(),
): readonly Fault[] {
  const faults: Fault[] = []
  const blame = (message: string, records: readonly Placed[] = policies, oneTooMany = 0): void => {
    const position = placeOf(records, oneTooMany, isNew) ?? policies[0]?.position ?? NOWHERE
    faults.push({ position, message })
  }
  const refuse = (count: number, bound: number, what: string, list?: readonly Placed[]): void => {
    if (count > bound) blame(`found ${count} ${what} allows ${bound}`, list, list && bound)
  }
  const { selectors } = memo.setPolicies(policies)
  refuse(selectors, bounds.selectors, 'selectors in all, limits.selectors')
  refuse(endpoints.length, bounds.endpoints, 'endpoints, limits.endpoints', endpoints)
  refuse(resources.length, bounds.resources, 'resources, limits.resources', resources)
  const prefixes = countPrefixes({ policies, endpoints, resources }, memo)
  refuse(prefixes, bounds.prefixes, 'addresses and prefixes with labels, limits.selectors')
  const sizes = new Map<string, number>()
  for (const endpoint of endpoints) {
    const selecting = memo.matcher.selecting(identityLabels.of(endpoint.labels))
    const defaultEgress = defaultEgressOf(endpoint.labels, compile.defaultEgress)
    const key = `${selecting.key} ${defaultEgress}`
    if (sizes.has(key)) continue
    const size = memo.sizes.get(key) ?? entriesOf(selecting.policies, { ...compile, defaultEgress })
    sizes.set(key, size)
    if (size <= bounds.policyEntries) continue
    const message = `endpoint ${endpoint.name} needs ${size} policy entries, limits.policy-entries allows ${bounds.policyEntries}`
    blame(message, [...selecting.policies, endpoint])
  }
  memo.sizes = sizes
  return faults
}

/** How many addresses and prefixes get labels. A prefix that is named twice is counted twice. */
export function countPrefixes(
  { policies, endpoints, resources }: Configured,
  memo = new BoundsMemo(),
): number {
  const { prefixes } = memo.setPolicies(policies)
  return prefixes + memo.endpointAddresses.over(endpoints) + memo.resourceAddresses.over(resources)
}

function countsOf(policy: Policy): Counts {
  let [selectors, prefixes] = [0, 0]
  for (const { peers } of policy.rules) {
    if (peers.kind === 'any') continue
    selectors += peers.selectors.length
    for (const peer of peers.selectors) {
      if (peer.kind === 'cidr') prefixes += 1 + peer.except.length
    }
  }
  return { selectors, prefixes }
}

function addressesOf({ addresses }: Addressed): number {
  return addresses.length
}

/** How many policy entries an endpoint needs if each selector selects exactly one identity. */
function entriesOf(
  policies: readonly Policy[],
  options: Pick<CompileOptions, 'defaultEgress'>,
): number {
  const entries = compileEntries(policies, { ...options, originOf: () => 0 })
  const { levels, selectors } = entries
  const classes = entries.complete ? [...levels.values()] : []
  const sizeOf = (coverages: readonly Coverage[]): number =>
    Math.max(
      flatten(coverages, evaluate).length,
      ...classes.map((ofClass) => flatten([...coverages, ...ofClass], evaluate).length),
    )
  let size = 0
  for (const coverages of levels.values()) size += flatten(coverages, evaluate).length
  // The selectors of one rule stand next to each other and share one list of coverages.
  let last: { readonly coverages: unknown; readonly size: number } | undefined
  for (const { coverages } of selectors) {
    if (last?.coverages !== coverages) last = { coverages, size: sizeOf(coverages) }
    size += last.size
  }
  return size
}

/** A record with its place in a file; undefined if it comes from no file. */
export interface Placed {
  readonly position?: Position
}

/** True if a file differs from its version in force. */
export type IsNew = (file: string) => boolean

/**
 * Returns the place to blame for too many records. `oneTooMany` is the index of the first record beyond the bound. The place is that
 * record if its file is new, else the last record of a new file, else again the record at `oneTooMany`.
 */
export function placeOf(
  records: readonly Placed[],
  oneTooMany: number,
  isNew: IsNew,
): Position | undefined {
  const first = records[oneTooMany]?.position
  if (first !== undefined && isNew(first.file)) return first
  const last = records.findLast(({ position }) => position !== undefined && isNew(position.file))
  return last?.position ?? first
}
