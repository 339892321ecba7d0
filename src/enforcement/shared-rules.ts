// SharedRulesCache compiles policies. All endpoints that the same policies select under the same default share one result. It compiles a
// set of policies when the set is first needed, and keeps the result while an endpoint wants the set.

import { invariant } from '../core/invariant.ts'
import type { EndpointRules } from '../datapath/flat-rules.ts'
import type { Selector } from '../identity/selector-cache.ts'
import { compilePolicies, type CompiledPolicy } from '../policy/compile/compile.ts'
import type { DefaultEgress } from '../policy/compile/default-egress.ts'
import type { Coverage } from '../policy/compile/flatten.ts'
import type { Selecting } from '../policy/match/policy-matcher.ts'
import type { CoreState } from './core-state.ts'

/** The rules of all endpoints that the same policies select under the same default. */
export interface SharedRules {
  readonly compiled: CompiledPolicy
  readonly rules: EndpointRules
}

/** The wanted policies of an endpoint. */
export interface Wanted {
  readonly selecting: Selecting
  readonly defaultEgress: DefaultEgress
}

export class SharedRulesCache {
  readonly #core: CoreState
  readonly #withoutDnsRules: 'allow' | 'deny'
  readonly #known = new Map<string, SharedRules>()
  /** Selects the addresses that endpoints under `allow-named` learned. Held while any compiled rules use it. */
  #named: Selector | undefined

  constructor(options: { readonly core: CoreState; readonly withoutDnsRules: 'allow' | 'deny' }) {
    this.#core = options.core
    this.#withoutDnsRules = options.withoutDnsRules
  }

  /** Returns the compiled rules. The selectors of the policies must exist before the call. */
  get(wanted: Wanted): SharedRules {
    const key = keyOf(wanted)
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const { selecting, defaultEgress } = wanted
    const compiled = compilePolicies(selecting.policies, {
      defaultEgress,
      withoutDnsRules: this.#withoutDnsRules,
      originOf: (policy, rule) => this.#core.origins.originOf(policy, rule),
    })
    if (compiled.named) this.#named ??= this.#core.selectors.acquire({ kind: 'named' }).selector
    const shared = { compiled, rules: this.#resolve(compiled) }
    this.#known.set(key, shared)
    return shared
  }

  /** Forgets all rules that are not in `wanted`. Call this while the selectors of the forgotten rules still exist. */
  keep(wanted: Iterable<Wanted>): void {
    const kept = new Set<string>()
    for (const each of wanted) kept.add(keyOf(each))
    for (const key of this.#known.keys()) if (!kept.has(key)) this.#known.delete(key)
  }

  /** Gives back the selector of learned addresses if no compiled rules use it. */
  releaseNamed(): void {
    if (this.#named === undefined) return
    for (const { compiled } of this.#known.values()) if (compiled.named) return
    this.#core.selectors.release(this.#named)
    this.#named = undefined
  }

  #resolve(compiled: CompiledPolicy): EndpointRules {
    const selectors = new Map<Selector, readonly Coverage[]>()
    for (const { spec, coverages } of compiled.selectors) {
      const selector = this.#core.selectors.find(spec)
      invariant(selector !== undefined, 'selectors of policies in force are known')
      const before = selectors.get(selector)
      selectors.set(selector, before === undefined ? coverages : [...before, ...coverages])
    }
    const { levels, complete } = compiled
    return { levels, selectors, complete }
  }
}

function keyOf({ selecting, defaultEgress }: Wanted): string {
  return `${selecting.key} ${defaultEgress}`
}
