// RuleOrigins gives numbers to the origins of policy entries. An origin is a rule, or a policy's default deny. Its number belongs to its
// place (policy, file and line), so an unchanged file that is read again keeps its numbers. A set of origins has a number too, and the
// kernel's policy entries carry that number. The tables grow with the number of different places that were ever in force.
//
// OwnerNames gives numbers to the owners of facts.

import { formatFault } from '../core/errors.ts'
import type { Policy, Rule } from '../policy/rule.ts'

/** The place where people find a rule. */
export interface RulePlace {
  readonly policy: string
  readonly file: string
  /** Absent for the default deny of an allow-list: a list refuses what none of its lines allows. */
  readonly line?: number
}

export class RuleOrigins {
  readonly #numbers = new Map<string, number>()
  /** The place of each origin. Origin 0 is the endpoint's default and has no place. */
  readonly #places: (RulePlace | undefined)[] = [undefined]
  readonly #defaultDenies = new Set<number>()
  readonly #setNumbers = new Map<string, number>([['', 0]])
  /** The set numbers of lists that `setOf` saw before. All entries of a rule share one list, so this saves a key. */
  readonly #listNumbers = new WeakMap<readonly number[], number>()
  readonly #sets: (readonly number[])[] = [[]]

  /** Returns the number of a rule. Without `rule`, returns the number of the policy's default deny. Its place is the policy's place. */
  originOf(policy: Policy, rule?: Rule): number {
    const name = qualifiedName(policy)
    const { position } = rule ?? policy
    const key = formatFault({ position, message: rule === undefined ? `default ${name}` : name })
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    const { file, line } = position
    const isOfList = rule === undefined && policy.kind === 'AllowList'
    const number = this.#places.push({ policy: name, file, ...(!isOfList && { line }) }) - 1
    this.#numbers.set(key, number)
    if (rule === undefined) this.#defaultDenies.add(number)
    return number
  }

  /** Returns the number of a set of origins. `origins` is in ascending order. */
  setOf(origins: readonly number[]): number {
    const known = this.#listNumbers.get(origins)
    if (known !== undefined) return known
    const key = origins.join(',')
    const number = this.#setNumbers.get(key) ?? this.#sets.push(origins) - 1
    this.#setNumbers.set(key, number)
    this.#listNumbers.set(origins, number)
    return number
  }

  /** True if the set contains at least one rule; false if it contains default denies only. */
  hasRule(set: number): boolean {
    return (this.#sets[set] ?? []).some(
      (origin) => origin !== 0 && !this.#defaultDenies.has(origin),
    )
  }

  /** Returns the places of the origins in a set. Empty for an endpoint's default. */
  places(set: number): readonly RulePlace[] {
    return (this.#sets[set] ?? []).flatMap((origin) => this.#places[origin] ?? [])
  }
}

/** Returns `namespace/name`, or the name alone for a clusterwide policy. */
export function qualifiedName(policy: Pick<Policy, 'name' | 'namespace'>): string {
  return policy.namespace === undefined ? policy.name : `${policy.namespace}/${policy.name}`
}

/**
 * Gives numbers to the owners of facts that configuration makes (policies, endpoints, resources, the node). A fact stores the number of
 * its owner. The owner's text is shown to people, and decides conflicts between owners. References to a number are counted. A number
 * without references is used again.
 */
export class OwnerNames {
  readonly #numbers = new Map<string, number>()
  readonly #texts: (string | undefined)[] = [undefined]
  readonly #uses: number[] = [0]
  readonly #free: number[] = []

  /** Returns the number of an owner's text, and counts a reference to it. */
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
