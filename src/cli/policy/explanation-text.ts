// Formats an explanation of policy as lines, from files (`policy explain`) or from a daemon (`explain`).

import type { Explanation } from '../../explain/explanation.ts'
import { fieldsOf, listOf, textOf, type PartOf } from '../fields.ts'
import { shownLabels } from '../shown-labels.ts'
import { formatPairs } from '../table.ts'

export function formatExplanation(found: PartOf<Explanation>): string {
  const { verdict, reason, rules, selectors, identities, labels, nearest, notes } = found
  const { egress, policies }: PartOf<Explanation['default']> = fieldsOf(found.default)
  const all = listOf(policies).map((name) => `"${textOf(name)}"`)
  const word = all.length === 1 ? 'policy' : 'policies'
  const why = all.length === 0 ? '' : `, turned on by the ${word} ${all.join(', ')}`
  const near: PartOf<NonNullable<Explanation['nearest']>> = fieldsOf(nearest)
  const add: PartOf<NonNullable<Explanation['add']>> = fieldsOf(found.add)
  return formatPairs([
    ['verdict', textOf(verdict)],
    ['reason', textOf(reason)],
    ...listOf(rules).map((each) => {
      const rule: PartOf<Explanation['rules'][number]> = fieldsOf(each)
      const about = [rule.action, rule.tier, rule.name].filter((part) => part !== undefined)
      return ['rule', `${placeOf(rule)} (${about.map(textOf).join(', ')})`] as const
    }),
    ['selectors', listed(selectors)],
    ['identities', listed(identities)],
    ['labels', listed(shownLabels(labels))],
    ['default', `${textOf(egress)}${why}`],
    ...(near.policy === undefined
      ? []
      : [['nearest', `${placeOf(near)}: ${textOf(near.missing)}`] as const]),
    ...(add.text === undefined
      ? []
      : [['remedy', `add the line ${textOf(add.text)} to ${textOf(add.file)}`] as const]),
    ...listOf(notes).map((note) => ['note', textOf(note)] as const),
  ])
}

function placeOf({
  policy,
  file,
  line,
}: {
  readonly policy?: unknown
  readonly file?: unknown
  readonly line?: unknown
}): string {
  return `${textOf(policy)} ${textOf(file)}:${textOf(line)}`
}

function listed(values: unknown): string {
  return listOf(values).map(textOf).join(', ') || '-'
}
