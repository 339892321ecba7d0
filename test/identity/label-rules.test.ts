import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LABEL_RULES, labelsOfNow, type LabelStep } from '../../src/identity/label-rules.ts'

/** Rules 2 rename a label, rules 3 drop one. */
const STEPS: readonly LabelStep[] = [
  (labels) => labels.map((label) => (label === 'old:a' ? 'new:a' : label)),
  (labels) => labels.filter((label) => label !== 'needless'),
]
const BEFORE = ['fqdn:a', 'needless', 'old:a']

const ROWS: readonly (readonly [rules: number, now: readonly string[], why: string])[] = [
  [1, ['fqdn:a', 'new:a'], 'both steps, in their order'],
  [2, ['fqdn:a', 'old:a'], 'only the second: the labels were made by the first'],
  [3, BEFORE, 'made by the present rules'],
  [4, BEFORE, 'made by a newer version, whose steps are unknown'],
  [0, ['fqdn:a', 'new:a'], 'before the first rules, as in a foreign header'],
]

for (const [rules, now, why] of ROWS) {
  test(`labelsOfNow, labels of rules ${rules}: ${why}`, () => {
    assert.deepEqual(labelsOfNow(BEFORE, rules, STEPS), now)
  })
}

test('labelsOfNow leaves labels of the rules in force as they are', () => {
  assert.deepEqual(labelsOfNow(BEFORE, LABEL_RULES), BEFORE)
})
