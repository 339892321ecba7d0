// From policies and endpoints to selectors, facts and rules. A new set of policies is put in force in three
// steps, each of which `Transition` carries through to the datapath before the next:
//   widen   selectors and CIDR facts of the new policies come, those of the old ones stay. More labels
//           change no verdict: a CIDR selector goes by the longest label around an address, whose prefix is
//           inside every selected prefix or exception that the address is inside of.
//   switch  every endpoint gets its new rules, on identities whose labels both sets of rules understand.
//   narrow  labels and facts that only the old policies needed go.
// So a flow that is allowed before and after is never dropped on the way. What an endpoint may ask changes
// with its rules: an answer is never released for a name that the rules in force do not know yet.

import type { EndpointId } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import { invariant } from '../core/invariant.ts'
import type { Endpoint } from '../endpoints/registry.ts'
import type { Selector } from '../identity/selector-cache.ts'
import type { AnswerRules } from '../policy/answer-rules.ts'
import { compilePolicies, type CompiledPolicy } from '../policy/compile.ts'
import { defaultEgressOf, type DefaultEgress } from '../policy/default-egress.ts'
import { IdentityLabels } from '../policy/identity-labels.ts'
import { indexLabels, policySelects } from '../policy/labels.ts'
import type { Policy } from '../policy/rule.ts'
import type { EndpointRules } from '../datapath/policy-maps.ts'
import type { Coverage } from '../policy/flatten.ts'
import { askingAt, askingOf } from './asking.ts'
import { cidrFacts } from './cidr-facts.ts'
import { ConfigFacts } from './config-facts.ts'
import type { CoreState } from './core-state.ts'
import { DnsVerdicts } from './dns-verdicts.ts'
import { Preallocation } from './preallocation.ts'

export interface PolicyControlOptions {
  readonly core: CoreState
  /** Of endpoints whose labels say nothing else. */
  readonly defaultEgress: DefaultEgress
  readonly withoutDnsRules: 'allow' | 'deny'
  readonly staticIdentitiesMax: number
  /** `endpoints.identity-labels`. Default: every label counts. */
  readonly identityLabels?: IdentityLabels
}

/** Rules of all endpoints that the same policies select. */
export interface SharedRules {
  readonly compiled: CompiledPolicy
  readonly rules: EndpointRules
}

/** What stands between the policies that were set and the datapath. */
type Phase = 'widen' | 'switch' | 'narrow' | 'settled'

export class PolicyControl {
  readonly dnsVerdicts = new DnsVerdicts()
  /** Which labels of endpoints policy sees. */
  readonly identityLabels: IdentityLabels
  readonly #core: CoreState
  readonly #options: PolicyControlOptions
  readonly #facts: ConfigFacts
  readonly #preallocation: Preallocation
  #policies: readonly Policy[] = []
  /** Selectors of the policies in force, each held once a use. */
  #held: Selector[] = []
  /** Held by policies that went, until nothing carries their labels any more. */
  #leaving: Selector[] = []
  /** Selects what endpoints under `allow-named` learned; held while compiled rules have it. */
  #named: Selector | undefined
  #shared = new Map<string, SharedRules>()
  readonly #wanted = new Map<EndpointId, SharedRules>()
  readonly #inForce = new Map<EndpointId, SharedRules>()
  readonly #answerRules = new Map<EndpointId, AnswerRules>()
  #endpoints: Iterable<Endpoint> = []
  #phase: Phase = 'settled'
  #revision = 0
  #loaded = false

  constructor(options: PolicyControlOptions) {
    this.#core = options.core
    this.#options = options
    this.identityLabels = options.identityLabels ?? new IdentityLabels([])
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

  /** The compiled policy of an endpoint, as it is wanted. */
  compiledOf(endpoint: EndpointId): CompiledPolicy | undefined {
    return this.#wanted.get(endpoint)?.compiled
  }

  /** What is in force for an endpoint: its policies compiled, and the rules that its policy map is made of. */
  inForceOf(endpoint: EndpointId): SharedRules | undefined {
    return this.#inForce.get(endpoint)
  }

  /** What documents say about answers to the endpoint; undefined: nothing. */
  answerRulesOf(endpoint: EndpointId): AnswerRules | undefined {
    return this.#answerRules.get(endpoint)
  }

  /** Whether the endpoint may get entries in a scope of its own, whatever policies come. */
  isScoped(endpoint: Pick<Endpoint, 'labels'>): boolean {
    return this.#core.scopes.learning === 'endpoint' || this.#egressOf(endpoint) === 'allow-named'
  }

  /** Sets the policies that are to be in force; the caller then runs the transition. The same ones cause nothing. */
  setPolicies(policies: readonly Policy[], endpoints: Iterable<Endpoint>): void {
    if (this.#loaded && sameItems(policies, this.#policies)) return
    this.#policies = policies
    this.#revision++
    this.#loaded = true
    this.#leaving.push(...this.#held)
    this.#held = policies.flatMap((policy) => this.#acquireSelectors(policy))
    this.#facts.add(policies.flatMap(cidrFacts))
    this.#shared = new Map()
    this.#phase = 'widen'
    this.setEndpoints(endpoints)
  }

  /** The endpoints there are now. Those without rules get them at once, others when no switch is awaited. */
  setEndpoints(endpoints: Iterable<Endpoint>): void {
    this.#endpoints = endpoints
    for (const endpoint of endpoints) this.#want(endpoint)
    for (const endpoint of endpoints) {
      if (this.#phase !== 'widen' || !this.#inForce.has(endpoint.id)) this.#enforce(endpoint.id)
    }
    this.#preallocate()
  }

  removeEndpoint(id: EndpointId): void {
    this.#core.scopes.setNamed(id, false)
    this.#wanted.delete(id)
    this.#inForce.delete(id)
    this.#answerRules.delete(id)
    this.#core.policyMaps.removeEndpoint(id)
    this.dnsVerdicts.remove(id)
  }

  /** The next step, called when all labels are up to date and committed; false when there is none. */
  advance(): boolean {
    switch (this.#phase) {
      case 'widen':
        this.#phase = 'switch'
        for (const { id } of this.#endpoints) this.#enforce(id)
        return true
      case 'switch':
        this.#phase = 'narrow'
        this.#dropUnusedLabels()
        for (const { id } of this.#endpoints) {
          if (this.#wanted.get(id)?.compiled.named !== true) this.#core.names.setNamed(id, false)
        }
        this.#facts.apply(this.#policies.flatMap(cidrFacts))
        this.#preallocate()
        return true
      case 'narrow':
        this.#phase = 'settled'
        for (const selector of this.#leaving) this.#core.selectors.release(selector)
        this.#leaving = []
        this.#releaseNamed()
        return true
      case 'settled':
        return false
    }
  }

  /**
   * Notes the rules that an endpoint is to have. What it learned gets its label before rules select by that, and
   * loses it after they do: the endpoint's default then changes in the steps of a new policy.
   */
  #want(endpoint: Endpoint): void {
    const shared = this.#sharedFor(endpoint)
    const { named } = shared.compiled
    const inForce = this.#inForce.get(endpoint.id)
    this.#wanted.set(endpoint.id, shared)
    if (named) this.#core.names.setNamed(endpoint.id, true)
    if (inForce !== undefined && inForce.compiled.named !== named) this.#phase = 'widen'
  }

  /** Makes the rules of an endpoint the wanted ones. */
  #enforce(id: EndpointId): void {
    const shared = this.#wanted.get(id)
    if (shared === undefined || this.#inForce.get(id) === shared) return
    this.#inForce.set(id, shared)
    this.#core.policyMaps.setRules(id, shared.rules)
    const { answers } = shared.compiled
    if (answers === undefined) this.#answerRules.delete(id)
    else this.#answerRules.set(id, answers)
    const asking = { core: this.#core, ...shared, withoutRules: this.#options.withoutDnsRules }
    this.dnsVerdicts.set(id, askingOf(asking), (server) => askingAt(asking, server))
  }

  #preallocate(): void {
    const families = new Set<Family>()
    for (const { addresses } of this.#endpoints) {
      for (const { family } of addresses) families.add(family)
    }
    this.#preallocation.refresh(families)
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
        acquired.push(selector)
      }
    }
    return acquired
  }

  /** Names stop getting the labels of FQDN selectors that no policy in force has. */
  #dropUnusedLabels(): void {
    const kept = new Set(this.#held)
    for (const selector of this.#leaving) {
      if (selector.kind === 'fqdn' && !kept.has(selector)) this.#core.selectorLabels.drop(selector)
    }
  }

  #egressOf({ labels }: Pick<Endpoint, 'labels'>): DefaultEgress {
    return defaultEgressOf(labels, this.#options.defaultEgress)
  }

  #releaseNamed(): void {
    if (this.#named === undefined) return
    for (const { compiled } of this.#shared.values()) if (compiled.named) return
    this.#core.selectors.release(this.#named)
    this.#named = undefined
  }

  #sharedFor(endpoint: Endpoint): SharedRules {
    const defaultEgress = this.#egressOf(endpoint)
    const labels = indexLabels(this.identityLabels.of(endpoint.labels))
    const numbers: number[] = []
    const selecting = this.#policies.filter((policy, i) => {
      const selects = policySelects(policy, labels)
      if (selects) numbers.push(i)
      return selects
    })
    const key = `${numbers.join(',')} ${defaultEgress}`
    const known = this.#shared.get(key)
    if (known !== undefined) return known
    const compiled = compilePolicies(selecting, {
      defaultEgress,
      withoutDnsRules: this.#options.withoutDnsRules,
      originOf: (policy, rule) => this.#core.origins.originOf(policy, rule),
    })
    if (compiled.named) this.#named ??= this.#core.selectors.acquire({ kind: 'named' }).selector
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

function sameItems<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i])
}
