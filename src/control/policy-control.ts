// From policies and endpoints to selectors, facts and rules. A new set of policies is applied as the
// difference: selectors and CIDR facts first, then each endpoint's rules (new denies, new allows), then
// known names and prefixes move to their new identities in slices (`Transition`), and only then what is
// left over is removed. A flow that is allowed before and after is never dropped on the way.

import type { EndpointId } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import { formatPrefix } from '../core/ip.ts'
import { invariant } from '../core/invariant.ts'
import type { Endpoint } from '../endpoints/registry.ts'
import { OWNER_POLICY } from '../ipcache/facts.ts'
import type { Selector } from '../identity/selector-cache.ts'
import { compilePolicies, type CompiledPolicy } from '../policy/compile.ts'
import { indexLabels, policySelects } from '../policy/labels.ts'
import type { Policy } from '../policy/rule.ts'
import type { EndpointRules } from '../datapath/policy-maps.ts'
import type { Coverage } from '../policy/flatten.ts'
import { ConfigFacts, type WantedFact } from './config-facts.ts'
import type { CoreState } from './core-state.ts'
import { DnsVerdicts } from './dns-verdicts.ts'
import { Preallocation } from './preallocation.ts'
import { qualifiedName } from './rule-origins.ts'

export interface PolicyControlOptions {
  readonly core: CoreState
  readonly defaultEgress: 'allow' | 'audit' | 'deny'
  readonly withoutDnsRules: 'allow' | 'deny'
  readonly staticIdentitiesMax: number
}

/** Rules of all endpoints that the same policies select. */
interface SharedRules {
  readonly compiled: CompiledPolicy
  readonly rules: EndpointRules
}

export class PolicyControl {
  readonly dnsVerdicts = new DnsVerdicts()
  readonly #core: CoreState
  readonly #options: PolicyControlOptions
  readonly #facts: ConfigFacts
  readonly #preallocation: Preallocation
  #policies: readonly Policy[] = []
  /** Selectors of the policies in force, each held once a use. */
  #held: Selector[] = []
  /** Held by policies that went, until nothing carries their labels any more. */
  #leaving: Selector[] = []
  #shared = new Map<string, SharedRules>()
  readonly #rulesOf = new Map<EndpointId, SharedRules>()
  #revision = 0
  #loaded = false

  constructor(options: PolicyControlOptions) {
    this.#core = options.core
    this.#options = options
    this.#facts = new ConfigFacts(options)
    this.#preallocation = new Preallocation(options)
  }

  get policies(): readonly Policy[] {
    return this.#policies
  }

  /** Grows with every change of policies. */
  get revision(): number {
    return this.#revision
  }

  /** Whether policies were applied at least once. */
  get loaded(): boolean {
    return this.#loaded
  }

  /** The compiled policy of an endpoint. */
  compiledOf(endpoint: EndpointId): CompiledPolicy | undefined {
    return this.#rulesOf.get(endpoint)?.compiled
  }

  /** Puts a new set of policies in force; the caller then runs the transition and commits. */
  setPolicies(policies: readonly Policy[], endpoints: Iterable<Endpoint>): void {
    this.#policies = policies
    this.#revision++
    this.#loaded = true
    this.#leaving.push(...this.#held)
    this.#held = []
    const added = policies.flatMap((policy) => this.#acquireSelectors(policy))
    this.#dropUnusedLabels(added)
    this.#facts.apply(policies.flatMap(cidrFacts))
    this.#shared = new Map()
    this.setEndpoints(endpoints)
  }

  /** Gives every endpoint its rules; for new policies or changed endpoints. */
  setEndpoints(endpoints: Iterable<Endpoint>): void {
    const families = new Set<Family>()
    this.#core.policyMaps.holdRemovals(true)
    for (const endpoint of endpoints) {
      for (const { family } of endpoint.addresses) families.add(family)
      const shared = this.#sharedFor(endpoint)
      if (this.#rulesOf.get(endpoint.id) === shared) continue
      this.#rulesOf.set(endpoint.id, shared)
      this.#core.policyMaps.setRules(endpoint.id, shared.rules)
      this.dnsVerdicts.set(endpoint.id, shared.compiled.dns)
    }
    this.#preallocation.refresh(families)
  }

  removeEndpoint(id: EndpointId): void {
    this.#rulesOf.delete(id)
    this.#core.policyMaps.removeEndpoint(id)
    this.dnsVerdicts.remove(id)
  }

  /** What may be taken away once every label is up to date. */
  finishTransition(): void {
    for (const selector of this.#leaving) this.#core.selectors.release(selector)
    this.#leaving = []
    this.#core.policyMaps.holdRemovals(false)
  }

  #acquireSelectors(policy: Policy): readonly Selector[] {
    const { selectors, selectorLabels } = this.#core
    const acquired: Selector[] = []
    for (const rule of policy.rules) {
      if (rule.peers.kind !== 'selectors') continue
      for (const peer of rule.peers.selectors) {
        if (peer.kind === 'entity') continue
        const { selector } = selectors.acquire(peer)
        if (selector.kind === 'fqdn') selectorLabels.ensure(selector)
        this.#held.push(selector)
        acquired.push(selector)
      }
    }
    return acquired
  }

  /** Names stop getting the labels of FQDN selectors that no policy in force has. */
  #dropUnusedLabels(inForce: readonly Selector[]): void {
    const kept = new Set(inForce)
    for (const selector of this.#leaving) {
      if (selector.kind === 'fqdn' && !kept.has(selector)) this.#core.selectorLabels.drop(selector)
    }
  }

  #sharedFor(endpoint: Endpoint): SharedRules {
    const labels = indexLabels(endpoint.labels)
    const numbers: number[] = []
    const selecting = this.#policies.filter((policy, i) => {
      const selects = policySelects(policy, labels)
      if (selects) numbers.push(i)
      return selects
    })
    const key = numbers.join(',')
    const known = this.#shared.get(key)
    if (known !== undefined) return known
    const compiled = compilePolicies(selecting, {
      defaultEgress: this.#options.defaultEgress,
      withoutDnsRules: this.#options.withoutDnsRules,
      originOf: (policy, rule) => this.#core.origins.originOf(policy, rule),
    })
    const shared = { compiled, rules: this.#resolve(compiled) }
    this.#shared.set(key, shared)
    return shared
  }

  #resolve(compiled: CompiledPolicy): EndpointRules {
    const selectors = new Map<Selector, readonly Coverage[]>()
    for (const { spec, coverages } of compiled.selectors) {
      const selector = this.#core.selectors.find(spec)
      invariant(selector !== undefined, 'selectors of policies in force are known')
      selectors.set(selector, [...(selectors.get(selector) ?? []), ...coverages])
    }
    return { levels: compiled.levels, selectors }
  }
}

/** Every prefix that a rule names, exceptions included (SEMANTICS 3 "CIDR fact"). */
function cidrFacts(policy: Policy): readonly WantedFact[] {
  const owner = qualifiedName(policy)
  return policy.rules.flatMap((rule) => {
    if (rule.peers.kind !== 'selectors') return []
    return rule.peers.selectors.flatMap((peer) => {
      if (peer.kind !== 'cidr') return []
      return [peer.prefix, ...peer.except].map((prefix) => ({
        prefix,
        kind: OWNER_POLICY,
        owner,
        labels: [`cidr:${formatPrefix(prefix)}`],
      }))
    })
  })
}
