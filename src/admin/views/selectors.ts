// Lists the selectors in use: what each selects now, how many names it matches, and which policies use it.

import { qualifiedName } from '../../enforcement/rule-origins.ts'
import type { Selector } from '../../identity/selector-cache.ts'
import type { SelectorShape } from '../document/shapes.ts'
import type { AdminState } from '../state.ts'
import { ROWS_PER_PAUSE, type Rows } from './rows.ts'

export function* selectorRows(state: AdminState): Rows<SelectorShape> {
  const users = new Map<Selector, Set<string>>()
  yield* countUsers(state, users)
  const names = new Map<string, number>()
  yield* countNames(state, names)
  for (const selector of state.core.selectors) {
    yield {
      selector: selector.text,
      kind: selector.kind,
      identities: [...selector.identities].sort((a, b) => a - b),
      names: selector.kind === 'fqdn' ? (names.get(`fqdn:${selector.text}`) ?? 0) : 0,
      seen: selector.kind === 'fqdn' ? state.core.selectorLabels.hasSeen(selector) : null,
      policies: [...(users.get(selector) ?? [])].sort(),
    }
  }
}

/** Fills `users` with the policies that use each selector. Yields only pauses. */
function* countUsers(
  { core, policies }: AdminState,
  users: Map<Selector, Set<string>>,
): Rows<never> {
  let looked = 0
  for (const policy of policies.policies) {
    const name = qualifiedName(policy)
    for (const { peers } of policy.rules) {
      if (peers.kind !== 'selectors') continue
      for (const peer of peers.selectors) {
        if (++looked % ROWS_PER_PAUSE === 0) yield undefined
        const selector = peer.kind === 'entity' ? undefined : core.selectors.find(peer)
        if (selector === undefined) continue
        const names = users.get(selector)
        if (names === undefined) users.set(selector, new Set([name]))
        else names.add(name)
      }
    }
  }
}

/** Fills `names` with the number of names that have each label. Names share label sets, so the names of each set are counted first. */
function* countNames({ core }: AdminState, names: Map<string, number>): Rows<never> {
  const { slots, labels } = core.names.names
  const bySet = new Map<number, number>()
  for (let row = 1; row <= slots.high; row++) {
    if (row % (ROWS_PER_PAUSE * 16) === 0) yield undefined
    const set = core.names.names.isUsed(row) ? labels[row]! : 0
    if (set !== 0) bySet.set(set, (bySet.get(set) ?? 0) + 1)
  }
  for (const [set, count] of bySet) {
    if (!core.labelSets.has(set)) continue
    for (const { text } of core.labelSets.get(set).labels) {
      names.set(text, (names.get(text) ?? 0) + count)
    }
  }
}
