// `--suggest`: the policy that allows what was seen: every name that was asked, and for each name every protocol and port at which
// one of its addresses was reached or refused. The engine of `policy suggest` makes it; `--policy` takes it. Pure.

import { formatPolicy, selectorOf } from '../suggest/format-policy.ts'
import { Needs } from '../suggest/needs.ts'
import { suggest } from '../suggest/suggest.ts'
import { EXEC_LABELS } from './allow.ts'
import type { Recorder } from './record.ts'

export function suggestPolicy({
  names,
  connections,
}: Pick<Recorder, 'names' | 'connections'>): string {
  const labels = Object.entries(EXEC_LABELS).map(([key, value]) => `external:${key}=${value}`)
  const needs = new Needs(labels)
  const seen = { first: '', last: '', endpoint: 'exec', node: '' }
  for (const { name, asked, verdict } of names.values()) {
    if (verdict !== 'failed') needs.addAsked(name, { ...seen, count: asked })
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
