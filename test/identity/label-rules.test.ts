import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LABEL_RULES, labelsOfNow, type LabelStep } from '../../src/identity/label-rules.ts'

/** Rules 2 write a label otherwise, rules 3 leave one away. */
const STEPS: readonly LabelStep[] = [
  (labels) => labels.map((label) => (label === 'old:a' ? 'new:a' : label)),
  (labels) => labels.filter((label) => label !== 'needless'),
]
const BEFORE = ['fqdn:a', 'needless', 'old:a']

const ROWS: readonly (readonly [rules: number, now: readonly string[], why: string])[] = [
  [1, ['fqdn:a', 'new:a'], 'both steps, in their order'],
  [2, ['fqdn:a', 'old:a'], 'the second alone: the first was taken when they were made'],
  [3, BEFORE, 'made by the rules of now'],
  [4, BEFORE, 'made by a newer version: nobody here knows the way back'],
  [0, ['fqdn:a', 'new:a'], 'before the first rules, as a header may say that is not ours'],
]

for (const [rules, now, why] of ROWS) {
  test(`labelsOfNow, labels of rules ${rules}: ${why}`, () => {
    assert.deepEqual(labelsOfNow(BEFORE, rules, STEPS), now)
  })
}

test('labelsOfNow leaves labels of the rules in force as they are', () => {
  assert.deepEqual(labelsOfNow(BEFORE, LABEL_RULES), BEFORE)
})
