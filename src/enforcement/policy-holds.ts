// PolicyHolds keeps all that policies need in the core: their selectors, the labels that names get from the selectors, and the facts of
// their prefixes. It works on the difference between the old and the wanted policies, in slices. `PolicyControl` calls `hold` before a
// rule uses a new policy, and `dropLabels`, `takeFacts` and `release` when no rule uses the removed policies any more.
//
// A policy is held from `hold` until it is removed from the wanted policies. PolicyHolds keeps one reference to a selector for each use by
// a held policy. The references of a removed policy end with `release`. A prefix carries the labels of every held policy that names the
// prefix. The labels of a removed policy end with `takeFacts`.

import type { FqdnSelector, Selector } from '../identity/selector-cache.ts'
import { OWNER_POLICY } from '../ipcache/facts.ts'
import type { PolicyDifference } from '../policy/match/policy-matcher.ts'
import type { Policy } from '../policy/rule.ts'
import { cidrFacts, ConfigFacts } from './config-facts.ts'
import { denyPeersOf, type DenyPeer } from './empty-denies.ts'
import type { CoreState } from './core-state.ts'
import { qualifiedName } from './rule-origins.ts'

/** Policies or selectors that are handled between two reads of the clock. */
const PER_LOOK = 16

export class PolicyHolds {
  readonly #core: CoreState
  readonly #facts: ConfigFacts
  readonly #onChange: (selector: Selector) => void
  readonly #held = new Map<Policy, readonly Selector[]>()
  /** Peers of deny rules, by held policy. */
  readonly #denyPeers = new Map<Policy, readonly DenyPeer[]>()
  /** Wanted policies that are not held yet. */
  readonly #coming = new Set<Policy>()
  /** How many times held policies use a selector. */
  readonly #uses = new Map<Selector, number>()
  /** How many of these uses are in policies that open guarded addresses to their names. */
  readonly #opening = new Map<FqdnSelector, number>()
  /** Selectors that `dropLabels` opens for guarded addresses, or closes, when no rule of a removed policy is in force. */
  readonly #reconsidered = new Set<FqdnSelector>()
  /** Selectors of removed policies, until `release`. */
  readonly #leaving: Selector[] = []
  /** How many items of `#leaving` `dropLabels` has checked. */
  #looked = 0
  /** Held policies that name prefixes. The key is the owner of their facts (`namespace/name`). */
  readonly #byOwner = new Map<string, Set<Policy>>()
  /** Owners whose facts can differ from the wanted facts. */
  readonly #stale = new Set<string>()

  /** Calls `onChange` with each selector that is new, stops giving its label to names, or is removed. */
  constructor(options: {
    readonly core: CoreState
    readonly onChange: (selector: Selector) => void
  }) {
    this.#core = options.core
    this.#onChange = options.onChange
    this.#facts = new ConfigFacts(options)
  }

  /** Notes the policies that were added and removed. */
  change({ added, removed }: PolicyDifference): void {
    for (const policy of added) this.#coming.add(policy)
    for (const policy of removed) this.#leave(policy)
  }

  /** Takes what new policies need, until `until` (`Clock.now()`). Returns true when all is taken. */
  hold(until: number): boolean {
    return this.#inSlices(this.#coming, until, (policy) => this.holdOne(policy))
  }

  /** Takes what one policy needs. Does nothing if the policy is held already. */
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

  /** The peers of the deny rules of all held policies. */
  *denyPeers(): Iterable<DenyPeer> {
    for (const peers of this.#denyPeers.values()) yield* peers
  }

  /** Stops giving names the labels of FQDN selectors that no held policy uses. Returns true when the work is done. */
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

  /** Removes the facts that only removed policies made. Returns true when the work is done. */
  takeFacts(until: number): boolean {
    const full: string[] = []
    const done = this.#inSlices(this.#stale, until, (owner) => {
      const wanted = [...(this.#byOwner.get(owner) ?? [])].flatMap(cidrFacts)
      this.#stale.delete(owner)
      if (!this.#facts.replace(OWNER_POLICY, owner, wanted)) full.push(owner)
    })
    // The next change tries again the facts that a full table refused.
    for (const owner of full) this.#stale.add(owner)
    return done
  }

  /** Gives back the selectors of removed policies. Returns true when the work is done. */
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
   * Counts a new use (`change` 1) or an ended use (-1) of a selector. A selector labels guarded addresses only if every policy that uses
   * the selector allows it, because the rules of each of these policies admit the addresses. A new policy that does not allow it closes the
   * selector for guarded addresses at once. Only `dropLabels` opens a selector, when no rule of a removed policy is in force.
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
