// From policies and endpoints to selectors, facts and rules. A new set of policies comes into force in steps, by its difference to the
// one before. `Transition` carries each step through to the datapath before the next:
//   hold     Everything that the new policies need comes: selectors, their labels, CIDR facts, pre-allocated identities. What the old
//            ones need stays. More labels change no verdict: a CIDR selector goes by the longest label around an address, whose prefix
//            is inside every selected prefix or exception that the address is inside of.
//   switch   Endpoint by endpoint the new rules come into force, on identities whose labels both sets of rules understand.
//   narrow   Labels and facts that only the old policies needed go, and their selectors once no identity carries the labels.
// So no flow that is allowed before and after is dropped in between. The names that an endpoint may ask change with its rules: an
// answer is never released for a name that the rules in force do not know yet.
//
// Cost: a look at each policy and each endpoint, then the new and old policies and the endpoints that they select. All but the look
// runs in slices.

import type { EndpointId } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import type { Endpoint } from '../endpoints/registry.ts'
import type { AnswerRules } from '../policy/compile/answer-rules.ts'
import type { CompiledPolicy } from '../policy/compile/compile.ts'
import { defaultEgressOf, type DefaultEgress } from '../policy/compile/default-egress.ts'
import { IdentityLabels } from '../policy/identity-labels.ts'
import { PolicyMatcher } from '../policy/match/policy-matcher.ts'
import type { Policy } from '../policy/rule.ts'
import { askingAt, askingOf } from './asking.ts'
import type { CoreState } from './core-state.ts'
import { DnsVerdicts } from './dns-verdicts.ts'
import type { DenyPeer } from './empty-denies.ts'
import { PolicyHolds } from './policy-holds.ts'
import { Preallocation } from './preallocation.ts'
import { SharedRulesCache, type SharedRules, type Wanted } from './shared-rules.ts'

export interface PolicyControlOptions {
  readonly core: CoreState
  /** The default of endpoints whose labels set no other. */
  readonly defaultEgress: DefaultEgress
  readonly withoutDnsRules: 'allow' | 'deny'
  readonly staticIdentitiesMax: number
  /** Families that are in use whatever addresses endpoints have. Default: none. */
  readonly families?: readonly Family[]
  /** `endpoints.identity-labels`. Default: every label counts. */
  readonly identityLabels?: IdentityLabels
}

/** The steps from new policies to the datapath. */
type Phase = 'hold' | 'widen' | 'switch' | 'narrow' | 'release' | 'settled'

/** Work done at once when policies or endpoints are set. The transition does the rest. */
const SLICE_MS = 2

export class PolicyControl {
  readonly dnsVerdicts = new DnsVerdicts()
  /** Selects the labels of endpoints that policy sees. */
  readonly identityLabels: IdentityLabels
  readonly #core: CoreState
  readonly #in: PolicyControlOptions
  readonly #matcher = new PolicyMatcher()
  readonly #shared: SharedRulesCache
  readonly #holds: PolicyHolds
  readonly #preallocation: Preallocation
  #policies: readonly Policy[] = []
  readonly #wanted = new Map<EndpointId, Wanted>()
  readonly #inForce = new Map<EndpointId, SharedRules>()
  readonly #answerRules = new Map<EndpointId, AnswerRules>()
  /** Endpoints that still have to get their rules in the switch that is under way. */
  readonly #switching = new Set<EndpointId>()
  #endpoints: Iterable<Endpoint> = []
  #families: ReadonlySet<Family> = new Set()
  #phase: Phase = 'settled'
  #revision = 0
  #loaded = false

  constructor(options: PolicyControlOptions) {
    const { core } = options
    this.#core = core
    this.#in = options
    this.identityLabels = options.identityLabels ?? new IdentityLabels([])
    this.#shared = new SharedRulesCache(options)
    this.#preallocation = new Preallocation(options)
    this.#holds = new PolicyHolds({
      core,
      onChange: (selector) => this.#preallocation.note(selector),
    })
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

  /** The policies that select an endpoint, as they are wanted. */
  policiesOf(endpoint: EndpointId): readonly Policy[] {
    return this.#wanted.get(endpoint)?.selecting.policies ?? []
  }

  /** Whether the endpoint may send anything anywhere, because no policy selects it. */
  isOpen({ id, labels }: Pick<Endpoint, 'id' | 'labels'>): boolean {
    const egress = this.#egressOf({ labels })
    return (egress === 'allow' || egress === 'audit') && this.policiesOf(id).length === 0
  }

  /** Whether the endpoint is open by the node's default and not by its own label. */
  isLeftOpen(endpoint: Pick<Endpoint, 'id' | 'labels'>): boolean {
    if (this.#in.defaultEgress !== 'allow' || !this.isOpen(endpoint)) return false
    return defaultEgressOf(endpoint.labels, 'deny') === 'deny'
  }

  /** The compiled policy of an endpoint, as it is wanted. */
  compiledOf(endpoint: EndpointId): CompiledPolicy | undefined {
    const wanted = this.#wanted.get(endpoint)
    return wanted === undefined ? undefined : this.#compiled(wanted).compiled
  }

  /** Peers of the deny rules of all policies. */
  denyPeers(): Iterable<DenyPeer> {
    return this.#holds.denyPeers()
  }

  /** The compiled policies in force for an endpoint, and the rules of its policy map. */
  inForceOf(endpoint: EndpointId): SharedRules | undefined {
    return this.#inForce.get(endpoint)
  }

  /** The rules of documents about answers to the endpoint; undefined: none. */
  answerRulesOf(endpoint: EndpointId): AnswerRules | undefined {
    return this.#answerRules.get(endpoint)
  }

  /** Whether the endpoint may get entries in its own scope, whatever policies come. */
  isScoped(endpoint: Pick<Endpoint, 'labels'>): boolean {
    return this.#core.scopes.learning === 'endpoint' || this.#egressOf(endpoint) === 'allow-named'
  }

  /** Sets the wanted policies. The caller then runs the transition. The same policies cause nothing. */
  setPolicies(policies: readonly Policy[], endpoints: Iterable<Endpoint>): void {
    if (this.#loaded && sameItems(policies, this.#policies)) return
    this.#policies = policies
    this.#revision++
    this.#loaded = true
    this.#holds.change(this.#matcher.set(policies))
    this.#phase = 'hold'
    this.#lookAt(endpoints)
    this.#hold(this.#core.clock.now() + SLICE_MS)
    this.#enforceUnhindered()
  }

  /** Sets the endpoints. Those without rules get them at once, the others when no switch is awaited. */
  setEndpoints(endpoints: Iterable<Endpoint>): void {
    this.#lookAt(endpoints)
    this.#enforceUnhindered()
    if (this.#phase !== 'hold') this.#preallocate(this.#core.clock.now() + SLICE_MS)
  }

  removeEndpoint(id: EndpointId): void {
    this.#core.scopes.setNamed(id, false)
    this.#wanted.delete(id)
    this.#inForce.delete(id)
    this.#answerRules.delete(id)
    this.#switching.delete(id)
    this.#core.policyMaps.removeEndpoint(id)
    this.dnsVerdicts.remove(id)
  }

  /**
   * The next step, or as much of it as there is time for, called when all labels are up to date and committed; false
   * when there is none.
   */
  advance(until = Number.POSITIVE_INFINITY): boolean {
    switch (this.#phase) {
      case 'hold':
        this.#hold(until)
        return true
      case 'widen':
        for (const { id } of this.#endpoints) this.#switching.add(id)
        this.#phase = 'switch'
        this.#switch(until)
        return true
      case 'switch':
        this.#switch(until)
        return true
      case 'narrow':
        this.#narrow(until)
        return true
      case 'release':
        this.#release(until)
        return true
      case 'settled':
        if (!this.#preallocation.pending) return false
        this.#preallocate(until)
        return true
    }
  }

  #hold(until: number): void {
    if (this.#holds.hold(until) && this.#preallocate(until)) this.#phase = 'widen'
  }

  #switch(until: number): void {
    for (const id of this.#switching) {
      this.#switching.delete(id)
      this.#enforce(id)
      if (this.#core.clock.now() >= until) return
    }
    this.#shared.keep(this.#wanted.values())
    this.#phase = 'narrow'
  }

  #narrow(until: number): void {
    if (!this.#holds.dropLabels(until)) return
    for (const { id } of this.#endpoints) {
      if (this.#inForce.get(id)?.compiled.named !== true) this.#core.names.setNamed(id, false)
    }
    if (this.#holds.takeFacts(until) && this.#preallocate(until)) this.#phase = 'release'
  }

  #release(until: number): void {
    if (!this.#holds.release(until) || !this.#preallocate(until)) return
    this.#shared.releaseNamed()
    this.#phase = 'settled'
  }

  /** Notes the wanted policies of each endpoint, and the families in use. */
  #lookAt(endpoints: Iterable<Endpoint>): void {
    this.#endpoints = endpoints
    const families = new Set<Family>(this.#in.families)
    for (const endpoint of endpoints) {
      this.#want(endpoint)
      for (const { family } of endpoint.addresses) families.add(family)
    }
    this.#families = families
  }

  /**
   * Notes the wanted rules of an endpoint. Its learned addresses get their label before rules select by it, and lose it after
   * rules stop to: the endpoint's default then changes in the steps of a new policy.
   */
  #want(endpoint: Endpoint): void {
    const defaultEgress = this.#egressOf(endpoint)
    const selecting = this.#matcher.selecting(this.identityLabels.of(endpoint.labels))
    const wanted = { selecting, defaultEgress }
    this.#wanted.set(endpoint.id, wanted)
    const named = defaultEgress === 'allow-named' && this.#compiled(wanted).compiled.named
    if (named) this.#core.names.setNamed(endpoint.id, true)
    const before = this.#inForce.get(endpoint.id)
    if (before === undefined || before.compiled.named === named) return
    if (this.#phase !== 'hold') this.#phase = 'widen'
  }

  /** Enforces the endpoints that need not wait for new policies. */
  #enforceUnhindered(): void {
    const isAwaited = this.#phase === 'hold' || this.#phase === 'widen'
    for (const { id } of this.#endpoints) {
      if (!isAwaited || !this.#inForce.has(id)) this.#enforce(id)
    }
  }

  /** Makes the rules of an endpoint the wanted ones. */
  #enforce(id: EndpointId): void {
    const wanted = this.#wanted.get(id)
    if (wanted === undefined) return
    const shared = this.#compiled(wanted)
    if (this.#inForce.get(id) === shared) return
    this.#inForce.set(id, shared)
    this.#core.policyMaps.setRules(id, shared.rules)
    const { answers } = shared.compiled
    if (answers === undefined) this.#answerRules.delete(id)
    else this.#answerRules.set(id, answers)
    const asking = { core: this.#core, ...shared, withoutRules: this.#in.withoutDnsRules }
    this.dnsVerdicts.set(id, askingOf(asking), (server) => askingAt(asking, server))
  }

  #compiled(wanted: Wanted): SharedRules {
    for (const policy of wanted.selecting.policies) this.#holds.holdOne(policy)
    return this.#shared.get(wanted)
  }

  #preallocate(until: number): boolean {
    return this.#preallocation.refresh(this.#families, until)
  }

  #egressOf({ labels }: Pick<Endpoint, 'labels'>): DefaultEgress {
    return defaultEgressOf(labels, this.#in.defaultEgress)
  }
}

function sameItems<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i])
}
