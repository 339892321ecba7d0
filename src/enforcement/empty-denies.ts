// Deny rules with a peer that selects nothing, so what they name is not denied. Mostly their labels are misspelt, or the peers are not
// known here. Checked once a second, when policy is realized, so that peers on their way are not reported.
//
// Cost of a check: one number for each peer of a deny rule.

import { formatPlace } from '../core/errors.ts'
import type { Selector } from '../identity/selector-cache.ts'
import type { Policy, Rule } from '../policy/rule.ts'
import type { CoreState } from './core-state.ts'
import { qualifiedName } from './rule-origins.ts'

/** A peer of a deny rule. */
export interface DenyPeer {
  readonly policy: Policy
  readonly rule: Rule
  /** Undefined: the peer never selects anything. */
  readonly selector: Selector | undefined
  /** As `get selectors` shows it. */
  readonly text: string
}

interface Looked {
  readonly policies: { denyPeers(): Iterable<DenyPeer> }
  readonly transition: { readonly pending: boolean }
}

export class EmptyDenies {
  readonly #at: Looked
  readonly #onChange: (texts: readonly string[]) => void
  #texts: readonly string[] = []

  /** Calls `onChange` with the messages when they changed. */
  constructor(at: Looked, onChange: (texts: readonly string[]) => void) {
    this.#at = at
    this.#onChange = onChange
  }

  /** One message for each such peer, without full stop. */
  get texts(): readonly string[] {
    return this.#texts
  }

  look(): void {
    const { policies, transition } = this.#at
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

/** The peers of a policy's deny rules that are no whole class of addresses. */
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
