// Everything that policies hold in the core: their selectors, the labels that names get from them, and the facts of their prefixes.
// Applied as the difference between the policies before and those wanted, in slices, in the order of `PolicyControl`: `hold` before
// rules use them; `dropLabels`, `takeFacts` and `release` when no rule does.
//
// Always: a selector is held once for each use by a held policy, and for each use by a policy that left until `release`. A prefix
// carries the labels of every held policy of its owner, and of those that left until `takeFacts`.

import type { FqdnSelector, Selector } from '../identity/selector-cache.ts'
import { OWNER_POLICY } from '../ipcache/facts.ts'
import type { PolicyDifference } from '../policy/match/policy-matcher.ts'
import type { Policy } from '../policy/rule.ts'
import { cidrFacts, ConfigFacts } from './config-facts.ts'
import { denyPeersOf, type DenyPeer } from './empty-denies.ts'
import type { CoreState } from './core-state.ts'
import { qualifiedName } from './rule-origins.ts'

/** Policies or selectors between two looks at the clock. */
const PER_LOOK = 16

export class PolicyHolds {
  readonly #core: CoreState
  readonly #facts: ConfigFacts
  readonly #onChange: (selector: Selector) => void
  readonly #held = new Map<Policy, readonly Selector[]>()
  /** Peers of deny rules, by held policy. */
  readonly #denyPeers = new Map<Policy, readonly DenyPeer[]>()
  /** Wanted and not held yet. */
  readonly #coming = new Set<Policy>()
  /** Uses by policies that are held. */
  readonly #uses = new Map<Selector, number>()
  /** Uses by policies that are held and open guarded addresses to their names. */
  readonly #opening = new Map<FqdnSelector, number>()
  /** Selectors to open or close once no rule of a policy that left is in force. */
  readonly #reconsidered = new Set<FqdnSelector>()
  /** Selectors of policies that left, until no identity carries their labels. */
  readonly #leaving: Selector[] = []
  /** How many of those had their labels checked. */
  #looked = 0
  /** Held policies that name prefixes, by the owner of their facts. */
  readonly #byOwner = new Map<string, Set<Policy>>()
  /** Owners whose facts may differ from the wanted ones. */
  readonly #stale = new Set<string>()

  /** Calls `onChange` with each selector that comes, stops giving its label, or goes. */
  constructor(options: {
    readonly core: CoreState
    readonly onChange: (selector: Selector) => void
  }) {
    this.#core = options.core
    this.#onChange = options.onChange
    this.#facts = new ConfigFacts(options)
  }

  /** Notes the policies that are wanted now. */
  change({ added, removed }: PolicyDifference): void {
    for (const policy of added) this.#coming.add(policy)
    for (const policy of removed) this.#leave(policy)
  }

  /** Takes what new policies need, until the time is over; true when all is taken. */
  hold(until: number): boolean {
    return this.#inSlices(this.#coming, until, (policy) => this.holdOne(policy))
  }

  /** Takes what one policy needs, unless it has it. */
  holdOne(policy: Policy): void {
    if (!this.#coming.delete(policy)) return
    const held = this.#acquire(policy)
    this.#held.set(policy, held)
    const denyPeers = denyPeersOf(this.#core, policy)
    if (denyPeers.length > 0) this.#denyPeers.set(policy, denyPeers)
    for (const selector of held) {
      const uses = this.#uses.get(selector) ?? 0
      this.#uses.set(selector, uses + 1)
      if (uses === 0) this.#onChange(selector)
      if (selector.kind === 'fqdn') this.#noteOpening(selector, policy, 1)
    }
    const facts = cidrFacts(policy)
    if (facts.length === 0) return
    const owner = qualifiedName(policy)
    const others = this.#byOwner.get(owner)
    if (others === undefined) this.#byOwner.set(owner, new Set([policy]))
    else others.add(policy)
    this.#facts.add(facts)
  }

  /** Peers of deny rules, of all policies that are held. */
  *denyPeers(): Iterable<DenyPeer> {
    for (const peers of this.#denyPeers.values()) yield* peers
  }

  /** Names stop getting the labels of FQDN selectors that no policy has; true when it is done. */
  dropLabels(until: number): boolean {
    const { clock, selectorLabels } = this.#core
    for (const selector of this.#reconsidered) {
      selectorLabels.setOpen(selector, this.#isOpen(selector))
    }
    this.#reconsidered.clear()
    for (let n = 1; this.#looked < this.#leaving.length; n++) {
      if (n % PER_LOOK === 0 && clock.now() >= until) return false
      const selector = this.#leaving[this.#looked++]
      if (selector?.kind !== 'fqdn' || this.#uses.has(selector)) continue
      selectorLabels.drop(selector)
      this.#onChange(selector)
    }
    return true
  }

  /** Facts that only policies which left had go; true when it is done. */
  takeFacts(until: number): boolean {
    const full: string[] = []
    const done = this.#inSlices(this.#stale, until, (owner) => {
      const wanted = [...(this.#byOwner.get(owner) ?? [])].flatMap(cidrFacts)
      this.#stale.delete(owner)
      if (!this.#facts.replace(OWNER_POLICY, owner, wanted)) full.push(owner)
    })
    // Facts refused by a full table are tried again with the next change.
    for (const owner of full) this.#stale.add(owner)
    return done
  }

  /** Gives back the selectors of policies that left; true when it is done. */
  release(until: number): boolean {
    const { clock, selectors } = this.#core
    for (let n = 1; this.#leaving.length > 0; n++) {
      if (n % PER_LOOK === 0 && clock.now() >= until) return false
      const selector = this.#leaving.pop()
      this.#looked = Math.min(this.#looked, this.#leaving.length)
      if (selector !== undefined && selectors.release(selector)) this.#onChange(selector)
    }
    return true
  }

  #leave(policy: Policy): void {
    if (this.#coming.delete(policy)) return
    for (const selector of this.#held.get(policy) ?? []) {
      this.#leaving.push(selector)
      const uses = (this.#uses.get(selector) ?? 1) - 1
      if (uses === 0) this.#uses.delete(selector)
      else this.#uses.set(selector, uses)
      if (selector.kind === 'fqdn') this.#noteOpening(selector, policy, -1)
    }
    this.#held.delete(policy)
    this.#denyPeers.delete(policy)
    const owner = qualifiedName(policy)
    const others = this.#byOwner.get(owner)
    if (others?.delete(policy) !== true) return
    if (others.size === 0) this.#byOwner.delete(owner)
    this.#stale.add(owner)
  }

  /**
   * A selector labels guarded addresses only when every policy that has it allows that, because rules of all of them admit the
   * addresses. It is closed at once, and opened only once no rule of a policy that left is in force.
   */
  #noteOpening(selector: FqdnSelector, policy: Policy, change: 1 | -1): void {
    const { selectorLabels } = this.#core
    if (policy.allowsGuarded === true) {
      const count = (this.#opening.get(selector) ?? 0) + change
      if (count === 0) this.#opening.delete(selector)
      else this.#opening.set(selector, count)
    } else if (!this.#opening.has(selector) && !selectorLabels.isOpen(selector)) return
    const isComing = change === 1
    if (isComing && !this.#isOpen(selector)) selectorLabels.setOpen(selector, false)
    this.#reconsidered.add(selector)
  }

  #isOpen(selector: FqdnSelector): boolean {
    const opening = this.#opening.get(selector)
    return opening !== undefined && opening === this.#uses.get(selector)
  }

  #acquire(policy: Policy): readonly Selector[] {
    const { selectors, selectorLabels } = this.#core
    const acquired: Selector[] = []
    for (const { peers } of policy.rules) {
      if (peers.kind !== 'selectors') continue
      for (const peer of peers.selectors) {
        if (peer.kind === 'entity') continue
        const { selector } = selectors.acquire(peer)
        if (selector.kind === 'fqdn') selectorLabels.ensure(selector)
        acquired.push(selector)
      }
    }
    return acquired
  }

  #inSlices<Item>(items: ReadonlySet<Item>, until: number, each: (item: Item) => void): boolean {
    let n = 0
    for (const item of items) {
      if (++n % PER_LOOK === 0 && this.#core.clock.now() >= until) return false
      each(item)
    }
    return true
  }
}
