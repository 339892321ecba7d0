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

/**
 * Numbers for the owners of facts that configuration makes (policies, endpoints, resources, the node). The fact holds the number.
 * The text is for people, and decides conflicts. Numbers are counted references; a free one is used again.
 */
export class OwnerNames {
  readonly #numbers = new Map<string, number>()
  readonly #texts: (string | undefined)[] = [undefined]
  readonly #uses: number[] = [0]
  readonly #free: number[] = []

  /** A counted reference to the number of an owner's text. */
  hold(text: string): number {
    const known = this.#numbers.get(text)
    if (known !== undefined) {
      this.#uses[known]!++
      return known
    }
    const number = this.#free.pop() ?? this.#texts.length
    this.#texts[number] = text
    this.#uses[number] = 1
    this.#numbers.set(text, number)
    return number
  }

  release(number: number): void {
    this.#uses[number]!--
    if (this.#uses[number] !== 0) return
    const text = this.#texts[number]
    if (text !== undefined) this.#numbers.delete(text)
    this.#texts[number] = undefined
    this.#free.push(number)
  }

  text(number: number): string {
    return this.#texts[number] ?? ''
  }
}
