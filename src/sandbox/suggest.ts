// `suggestPolicy` makes the policy of `exec --suggest`. The policy allows every name that the command asked, except for SRV records only. For each name, it allows every
// protocol and port at which the command reached, or was refused, one of the name's addresses. The code of `policy suggest` makes the
// policy, and `exec --policy` can read it. The function has no side effects.

import { formatPolicy, selectorOf } from '../suggest/format.ts'
import { Needs } from '../suggest/needs.ts'
import { suggest } from '../suggest/suggest.ts'
import { EXEC_LABELS } from './allow.ts'
import type { Recorder } from './record.ts'

/** Returns the text of a policy file for what the Recorder recorded. */
export function suggestPolicy({
  names,
  connections,
}: Pick<Recorder, 'names' | 'connections'>): string {
  const labels = Object.entries(EXEC_LABELS).map(([key, value]) => `external:${key}=${value}`)
  const needs = new Needs(labels)
  const seen = { first: '', last: '', endpoint: 'exec', node: '' }
  for (const { name, asked, verdict, isService } of names.values()) {
    if (verdict !== 'failed' && !isService) needs.addAsked(name, { ...seen, count: asked })
  }
  const guarded = new Set<string>()
  for (const { packets, names: known, isGuarded, ...rest } of connections.values()) {
    if (isGuarded) guarded.add(rest.address)
    needs.addReached(
      { ...rest, names: [...known], labels: [], isForbidden: false },
      { ...seen, count: packets },
    )
  }
  const suggestion = suggest(needs, {
    collapseFrom: Number.POSITIVE_INFINITY,
    nameless: 'leave-out',
    isGuarded: (address) => guarded.has(address),
    judgeAsked: () => 'wanted',
    judgeReached: () => 'wanted',
  })
  return formatPolicy(suggestion, {
    name: 'exec-suggested',
    namespace: 'default',
    selector: selectorOf(labels),
    heading: ['What one run of `namegate exec` asked and reached. Read it before you use it.'],
    evidence: false,
  })
}
