// EmptyDenies reports deny rules with a peer that selects nothing. Such a rule does not deny what it names. Mostly a label is misspelt, or
// this node does not know the peer. The check runs once a second, but not during a change of policy. At that time selectors can still lack
// their identities.
//
// Cost of a check: one comparison for each peer of a deny rule.

import { formatPlace } from '../core/errors.ts'
import type { Selector } from '../identity/selector-cache.ts'
import type { Policy, Rule } from '../policy/rule.ts'
import type { CoreState } from './core-state.ts'
import { qualifiedName } from './rule-origins.ts'

/** A peer of a deny rule. */
export interface DenyPeer {
  readonly policy: Policy
  readonly rule: Rule
  /** Undefined: the peer can never select anything. */
  readonly selector: Selector | undefined
  /** The peer as `get selectors` shows it. */
  readonly text: string
}

interface Looked {
  readonly policies: { denyPeers(): Iterable<DenyPeer> }
  readonly transition: { readonly pending: boolean }
}

export class EmptyDenies {
  readonly #options: Looked
  readonly #onChange: (texts: readonly string[]) => void
  #texts: readonly string[] = []

  /** Calls `onChange` with all messages when they have changed. */
  constructor(at: Looked, onChange: (texts: readonly string[]) => void) {
    this.#options = at
    this.#onChange = onChange
  }

  /** One message for each peer that selects nothing, without a full stop. */
  get texts(): readonly string[] {
    return this.#texts
  }

  /** Checks all deny rules. Does nothing during a transition. */
  look(): void {
    const { policies, transition } = this.#options
    if (transition.pending) return
    const texts: string[] = []
    for (const peer of policies.denyPeers()) {
      if ((peer.selector?.identities.size ?? 0) === 0) texts.push(textOf(peer))
    }
    const isSame =
      texts.length === this.#texts.length && texts.every((text, i) => text === this.#texts[i])
    if (isSame) return
    this.#texts = texts
    this.#onChange(texts)
  }
}

/** Returns the peers of a policy's deny rules, without the entities that name a class of addresses. */
export function denyPeersOf(
  { selectors }: Pick<CoreState, 'selectors'>,
  policy: Policy,
): readonly DenyPeer[] {
  return policy.rules.flatMap((rule): readonly DenyPeer[] => {
    const { action, peers } = rule
    if (action !== 'deny' || peers.kind === 'any') return []
    if (peers.selectors.length === 0)
      return [{ policy, rule, selector: undefined, text: 'no peer' }]
    return peers.selectors.flatMap((peer): readonly DenyPeer[] => {
      if (peer.kind === 'entity') {
        return peer.entity === 'none' ? [{ policy, rule, selector: undefined, text: 'none' }] : []
      }
      const selector = selectors.find(peer)
      return selector === undefined ? [] : [{ policy, rule, selector, text: selector.text }]
    })
  })
}

function textOf({ policy, rule, text }: DenyPeer): string {
  const place = formatPlace(rule.position)
  return `policy ${qualifiedName(policy)}: deny rule at ${place} has a peer that selects nothing: ${text}`
}
