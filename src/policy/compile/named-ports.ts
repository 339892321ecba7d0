// PortResolver replaces port names in policies by port numbers, before policies are compiled. Endpoints and resources define which numbers
// a name has. As in Cilium, if a name has several numbers for one protocol, an allow rule opens none of them, and a deny rule denies all of
// them. A name without a number covers no port.

import type { PortRange } from '../../core/protocol.ts'
import type { NamedPort, Policy, PortRule, Rule } from '../rule.ts'

/** A port that an endpoint or a resource has under a name. */
export interface PortName {
  readonly name: string
  readonly protocol: number
  readonly port: number
}

/** Port numbers by `PROTOCOL NAME`, where PROTOCOL is the IP protocol number: `6 http`. */
export type PortNames = ReadonlyMap<string, ReadonlySet<number>>

/** Returns true for a port name as in IANA's registry of service names: 1 to 15 letters, digits and -, with at least one letter. */
export function isPortName(text: string): boolean {
  return /^[A-Za-z0-9]([A-Za-z0-9-]{0,13}[A-Za-z0-9])?$/.test(text) && /[A-Za-z]/.test(text)
}

/** Joins the named ports of all endpoints and resources. */
export function portNamesOf(named: Iterable<readonly PortName[]>): PortNames {
  const names = new Map<string, Set<number>>()
  for (const ports of named) {
    for (const { name, protocol, port } of ports) {
      const key = `${protocol} ${name}`
      const known = names.get(key)
      if (known === undefined) names.set(key, new Set([port]))
      else known.add(port)
    }
  }
  return names
}

/** Adds port numbers for the port names of policies. A policy whose numbers did not change stays the same object. */
export class PortResolver {
  /** By policy as loaded: the policy with numbers, and a text of these numbers. */
  readonly #resolved = new WeakMap<Policy, { readonly policy: Policy; readonly key: string }>()
  /** The arguments and result of the last call. Usually only a few policies were replaced since, and the others keep their results. */
  #last: {
    readonly policies: readonly Policy[]
    readonly names: PortNames
    readonly resolved: readonly Policy[]
  } = { policies: [], names: new Map(), resolved: [] }

  resolve(policies: readonly Policy[], names: PortNames): readonly Policy[] {
    const { policies: known, names: before, resolved } = this.#last
    if (names === before && policies === known) return resolved
    const all = policies.map((policy, i) => {
      const same = names === before && policy === known[i] ? resolved[i] : undefined
      return same ?? this.#resolve(policy, names)
    })
    this.#last = { policies, names, resolved: all }
    return all
  }

  #resolve(policy: Policy, names: PortNames): Policy {
    if (!policy.rules.some(hasNames)) return policy
    const rules = policy.rules.map((rule) => resolveRule(rule, names))
    const key = JSON.stringify(rules.map(({ toPorts }) => toPorts?.map(({ ports }) => ports)))
    const known = this.#resolved.get(policy)
    if (known?.key === key) return known.policy
    const resolved = { ...policy, rules }
    this.#resolved.set(policy, { policy: resolved, key })
    return resolved
  }
}

function hasNames({ toPorts }: Rule): boolean {
  return toPorts?.some(({ named }) => named !== undefined) ?? false
}

function resolveRule(rule: Rule, names: PortNames): Rule {
  const { toPorts, action } = rule
  if (toPorts === undefined || !hasNames(rule)) return rule
  return { ...rule, toPorts: toPorts.map((entry) => resolveEntry(entry, action, names)) }
}

function resolveEntry(entry: PortRule, action: Rule['action'], names: PortNames): PortRule {
  if (entry.named === undefined) return entry
  const numbers = entry.named.flatMap((each) => rangesOf(each, action, names))
  return { ...entry, ports: [...entry.ports, ...numbers] }
}

function rangesOf(
  { name, protocols }: NamedPort,
  action: Rule['action'],
  names: PortNames,
): readonly PortRange[] {
  return protocols.flatMap((protocol) => {
    const numbers = [...(names.get(`${protocol} ${name}`) ?? [])].sort((a, b) => a - b)
    if (action === 'allow' && numbers.length > 1) return []
    return numbers.map((port) => ({ protocol, low: port, high: port }))
  })
}
