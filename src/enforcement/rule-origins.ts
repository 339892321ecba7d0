// Numbers for the origins of policy entries. A rule, or a policy's default deny, has a number by its place (policy, file and line), so an
// unchanged file that is read again keeps its numbers. A set of rules has a number too, which the kernel's policy entries carry. Grows
// with the distinct places that were ever in force.

import { formatFault } from '../core/errors.ts'
import type { Policy, Rule } from '../policy/rule.ts'

/** A rule as people find it. */
export interface RulePlace {
  readonly policy: string
  readonly file: string
  readonly line: number
}

export class RuleOrigins {
  readonly #numbers = new Map<string, number>()
  /** Origin 0 is a default. */
  readonly #places: (RulePlace | undefined)[] = [undefined]
  readonly #defaultDenies = new Set<number>()
  readonly #setNumbers = new Map<string, number>([['', 0]])
  /** Numbers of lists asked for before: those of one rule are the same list. */
  readonly #listNumbers = new WeakMap<readonly number[], number>()
  readonly #sets: (readonly number[])[] = [[]]

  /** The number of a rule; without one of the default deny that the policy turns on, whose place is the policy's. */
  originOf(policy: Policy, rule?: Rule): number {
    const name = qualifiedName(policy)
    const { position } = rule ?? policy
    const key = formatFault({ position, message: rule === undefined ? `default ${name}` : name })
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    const { file, line } = position
    const number = this.#places.push({ policy: name, file, line }) - 1
    this.#numbers.set(key, number)
    if (rule === undefined) this.#defaultDenies.add(number)
    return number
  }

  /** The number of a set of origins, ascending. */
  setOf(origins: readonly number[]): number {
    const known = this.#listNumbers.get(origins)
    if (known !== undefined) return known
    const key = origins.join(',')
    const number = this.#setNumbers.get(key) ?? this.#sets.push(origins) - 1
    this.#setNumbers.set(key, number)
    this.#listNumbers.set(origins, number)
    return number
  }

  /** Whether a rule is in the set, not only what denies by default. */
  hasRule(set: number): boolean {
    return (this.#sets[set] ?? []).some(
      (origin) => origin !== 0 && !this.#defaultDenies.has(origin),
    )
  }

  /** The rules behind the number of a set; empty for a default. */
  places(set: number): readonly RulePlace[] {
    return (this.#sets[set] ?? []).flatMap((origin) => this.#places[origin] ?? [])
  }
}

/** `namespace/name`, or the name alone for a clusterwide policy. */
export function qualifiedName(policy: Pick<Policy, 'name' | 'namespace'>): string {
  return policy.namespace === undefined ? policy.name : `${policy.namespace}/${policy.name}`
}
