// May this endpoint ask this name: all DNS patterns of all endpoints in one index, and for each endpoint the
// set of patterns that permit. One look at the name answers for any endpoint; cost does not grow with the
// number of exact and leading-star patterns. Read on the packet path: nothing is allocated.

import type { EndpointId } from '../core/ids.ts'
import type { DnsRules } from '../policy/dns-rules.ts'
import { IdList } from '../policy/id-list.ts'
import type { Pattern } from '../policy/pattern.ts'
import { PatternIndex } from '../policy/pattern-index.ts'

interface Counted {
  readonly id: number
  readonly pattern: Pattern
  users: number
}

type Permission =
  | { readonly kind: 'every-name' }
  | { readonly kind: 'no-name' }
  | {
      readonly kind: 'names'
      readonly ids: ReadonlySet<number>
      readonly patterns: readonly Counted[]
    }

export class DnsVerdicts {
  readonly #index = new PatternIndex()
  readonly #byText = new Map<string, Counted>()
  readonly #permissions = new Map<EndpointId, Permission>()
  readonly #matched = new IdList()
  #nextId = 0

  set(endpoint: EndpointId, rules: DnsRules): void {
    const before = this.#permissions.get(endpoint)
    if (rules.kind !== 'names') {
      this.#permissions.set(endpoint, rules)
    } else {
      const texts = new Map(rules.patterns.map((pattern) => [pattern.text, pattern]))
      const patterns = [...texts.values()].map((pattern) => this.#hold(pattern))
      const ids = new Set(patterns.map(({ id }) => id))
      this.#permissions.set(endpoint, { kind: 'names', ids, patterns })
    }
    this.#release(before)
  }

  remove(endpoint: EndpointId): void {
    const before = this.#permissions.get(endpoint)
    this.#permissions.delete(endpoint)
    this.#release(before)
  }

  /** Whether the endpoint may ask the lower-case wire name at `offset`; false for an endpoint without rules. */
  mayAsk(endpoint: EndpointId, wire: Uint8Array, offset: number): boolean {
    const permission = this.#permissions.get(endpoint)
    if (permission === undefined || permission.kind === 'no-name') return false
    if (permission.kind === 'every-name') return true
    const matched = this.#matched
    matched.clear()
    const count = this.#index.match(wire, offset, matched)
    for (let i = 0; i < count; i++) if (permission.ids.has(matched.items[i]!)) return true
    return false
  }

  #hold(pattern: Pattern): Counted {
    const known = this.#byText.get(pattern.text)
    if (known !== undefined) {
      known.users++
      return known
    }
    const counted = { id: this.#nextId++, pattern, users: 1 }
    this.#byText.set(pattern.text, counted)
    this.#index.add(pattern, counted.id)
    return counted
  }

  #release(permission: Permission | undefined): void {
    if (permission?.kind !== 'names') return
    for (const counted of permission.patterns) {
      counted.users--
      if (counted.users > 0) continue
      this.#byText.delete(counted.pattern.text)
      this.#index.remove(counted.pattern, counted.id)
    }
  }
}
