// Random label selectors over the few labels of the endpoints and resources in random worlds: positive and negative conditions, keys
// with and without a source, and values that no object has.

import type { LabelExpression, LabelSelector } from '../../../src/policy/rule.ts'
import type { Random } from './random.ts'

const KEYS = ['app', 'k8s:app', 'external:app', 'tier', 'env'] as const
const VALUES = ['a', 'b', 'db', '1', ''] as const
/** Labels of resources in such worlds. */
export const RESOURCE_LABELS = [
  ['k8s:app=db', 'k8s:tier=1'],
  ['external:app=a', 'external:env=b'],
] as const

/** A selector. `inside` has further conditions, such as a namespace. */
export function randomSelector(
  random: Random,
  inside: readonly (readonly [string, string])[] = [],
): LabelSelector {
  const label = (): readonly [string, string] => [random.pick(KEYS), random.pick(VALUES)]
  const count = random.oneIn(2) ? 1 : 0
  const matchLabels = new Map([...inside, ...Array.from({ length: count }, label)])
  const expressions = Array.from({ length: random.below(3) }, () => randomExpression(random))
  return expressions.length === 0 ? { matchLabels } : { matchLabels, matchExpressions: expressions }
}

function randomExpression(random: Random): LabelExpression {
  const operator = random.pick(['In', 'NotIn', 'Exists', 'DoesNotExist'] as const)
  const wantsValues = operator === 'In' || operator === 'NotIn'
  const values = wantsValues
    ? Array.from({ length: 1 + random.below(2) }, () => random.pick(VALUES))
    : []
  return { key: random.pick(KEYS), operator, values }
}
