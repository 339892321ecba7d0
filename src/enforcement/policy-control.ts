// PolicyControl turns policies and endpoints into selectors, facts and rules. It brings a new set of policies into force in phases.
// `Transition` starts each phase when the datapath has confirmed the results of the phase before:
//   hold     Takes all that the new policies need: selectors, labels of names, CIDR facts, identities. Keeps all that the old ones need.
//   widen    Lists every endpoint for the switch. The labels of the old and the new policies are now in force together.
//   switch   Gives one endpoint after another its new rules.
//   narrow   Removes the labels and facts that only the old policies needed.
//   release  Gives back the selectors that only the old policies needed. No identity carries their labels now.
//   settled  Has no work, except identities that still wait for pre-allocation.
// So a connection that the old and the new policies allow is never cut in between. The labels that `hold` adds change no verdict of the
// old rules. This is true for CIDR, too: an address carries only the `cidr:` label of the longest known prefix around the address. That
// prefix lies inside every known prefix or exception that contains the address, so CIDR selectors find the same result as before.
// The names that an endpoint can ask change together with its rules. So namegate never releases an answer for a name that the rules in
// force do not know.
//
// Cost: one check of every policy and endpoint at once. The work on changed policies and the endpoints that they select runs in slices.

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
  /** The default for endpoints whose labels set no default of their own. */
  readonly defaultEgress: DefaultEgress
  readonly withoutDnsRules: 'allow' | 'deny'
  readonly staticIdentitiesMax: number
  /** Address families that are always in use, even if no endpoint has an address of the family. Default: none. */
  readonly families?: readonly Family[]
  /** `endpoints.identity-labels`. Default: policy sees every label. */
  readonly identityLabels?: IdentityLabels
}

/** The phases of a change of policies, in their order. The file header explains each phase. */
type Phase = 'hold' | 'widen' | 'switch' | 'narrow' | 'release' | 'settled'

/** Milliseconds of work that a call of `setPolicies` or `setEndpoints` does itself. The transition does the rest. */
const SLICE_MS = 2

export class PolicyControl {
  readonly dnsVerdicts: DnsVerdicts
  /** Filters the labels of an endpoint down to the labels that policy sees. */
  readonly identityLabels: IdentityLabels
  readonly #core: CoreState
  readonly #options: PolicyControlOptions
  readonly #matcher = new PolicyMatcher()
  readonly #shared: SharedRulesCache
  readonly #holds: PolicyHolds
  readonly #preallocation: Preallocation
  #policies: readonly Policy[] = []
  readonly #wanted = new Map<EndpointId, Wanted>()
  readonly #inForce = new Map<EndpointId, SharedRules>()
  readonly #answerRules = new Map<EndpointId, AnswerRules>()
  /** Endpoints that still wait for their new rules in the phase `switch`. */
  readonly #switching = new Set<EndpointId>()
  #endpoints: Iterable<Endpoint> = []
  #families: ReadonlySet<Family> = new Set()
  #phase: Phase = 'settled'
  #revision = 0
  #loaded = false

  constructor(options: PolicyControlOptions) {
    const { core } = options
    this.#core = core
    this.#options = options
    this.dnsVerdicts = new DnsVerdicts(core)
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

  /** Counts the changes of the wanted policies. */
  get revision(): number {
    return this.#revision
  }

  /** True once policies were set, even an empty list. */
  get loaded(): boolean {
    return this.#loaded
  }

  /** The wanted policies that select an endpoint. They can be ahead of the policies in force. */
  policiesOf(endpoint: EndpointId): readonly Policy[] {
    return this.#wanted.get(endpoint)?.selecting.policies ?? []
  }

  /** True if the endpoint can send anything anywhere, because no policy selects it. */
  isOpen({ id, labels }: Pick<Endpoint, 'id' | 'labels'>): boolean {
    const egress = this.#egressOf({ labels })
    return (egress === 'allow' || egress === 'audit') && this.policiesOf(id).length === 0
  }

  /** True if the endpoint is open because of the node's default, and not because of its own label. */
  isLeftOpen(endpoint: Pick<Endpoint, 'id' | 'labels'>): boolean {
    if (this.#options.defaultEgress !== 'allow' || !this.isOpen(endpoint)) return false
    return defaultEgressOf(endpoint.labels, 'deny') === 'deny'
  }

  /** The compiled wanted policy of an endpoint; undefined for an unknown endpoint. */
  compiledOf(endpoint: EndpointId): CompiledPolicy | undefined {
    const wanted = this.#wanted.get(endpoint)
    return wanted === undefined ? undefined : this.#compiled(wanted).compiled
  }

  /** The peers of all deny rules. */
  denyPeers(): Iterable<DenyPeer> {
    return this.#holds.denyPeers()
  }

  /** The compiled policy in force for an endpoint, and the rules of its policy map; undefined for an unknown endpoint. */
  inForceOf(endpoint: EndpointId): SharedRules | undefined {
    return this.#inForce.get(endpoint)
  }

  /** The rules in force about answers to the endpoint; undefined if policy has none. */
  answerRulesOf(endpoint: EndpointId): AnswerRules | undefined {
    return this.#answerRules.get(endpoint)
  }

  /** True if the endpoint can get prefix entries in its own scope. New policies do not change the result. */
  isScoped(endpoint: Pick<Endpoint, 'labels'>): boolean {
    return this.#core.scopes.learning === 'endpoint' || this.#egressOf(endpoint) === 'allow-named'
  }

  /** Sets the wanted policies. The caller then runs the transition. An unchanged list does nothing. */
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

  /** Sets the endpoints. New endpoints get their rules at once. In the phases `hold` and `widen`, known endpoints wait for `switch`. */
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

  /** Works on the present phase until `until` (`Clock.now()`). Call it when all labels are in force. Returns false if no work is left. */
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

  /** Notes the wanted policies of each endpoint, and the address families in use. */
  #lookAt(endpoints: Iterable<Endpoint>): void {
    this.#endpoints = endpoints
    const families = new Set<Family>(this.#options.families)
    for (const endpoint of endpoints) {
      this.#want(endpoint)
      for (const { family } of endpoint.addresses) families.add(family)
    }
    this.#families = families
  }

  /**
   * Notes the wanted rules of an endpoint. If its default changes to or from `allow-named`, the rules change in phases, too. So its
   * learned addresses carry `reserved:named` before a rule selects by that label, and lose the label when no rule does.
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

  /** Enforces all endpoints; before `switch` only the endpoints that have no rules in force. */
  #enforceUnhindered(): void {
    const isAwaited = this.#phase === 'hold' || this.#phase === 'widen'
    for (const { id } of this.#endpoints) {
      if (!isAwaited || !this.#inForce.has(id)) this.#enforce(id)
    }
  }

  /** Brings the wanted rules of an endpoint into force. */
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
    const asking = { core: this.#core, ...shared, withoutRules: this.#options.withoutDnsRules }
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
    return defaultEgressOf(labels, this.#options.defaultEgress)
  }
}

function sameItems<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i])
}
