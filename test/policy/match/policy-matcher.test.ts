// Which policies select an endpoint, compared with a look at every policy, after any changes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { indexLabels, policySelects } from '../../../src/policy/match/labels.ts'
import { PolicyMatcher } from '../../../src/policy/match/policy-matcher.ts'
import type { LabelSelector, Policy } from '../../../src/policy/rule.ts'
import { runsOf } from '../../support/properties.ts'
import { Random } from '../../support/models/random.ts'

const KEYS = ['app', 'k8s:app', 'tier', 'external:tier']
const VALUES = ['a', 'b', '']
const NAMESPACES = [undefined, 'default', 'shop']

function mkPolicy(selector: LabelSelector, namespace?: string): Policy {
  return {
    name: 'p',
    namespace,
    kind: 'CiliumNetworkPolicy',
    selector,
    rules: [],
    defaultDeny: true,
    position: { file: 'p.yaml', line: 1, column: 1 },
  }
}

function randomPolicy(random: Random): Policy {
  const matchLabels = new Map<string, string>()
  for (let i = random.below(3); i > 0; i--) matchLabels.set(random.pick(KEYS), random.pick(VALUES))
  const operator = random.pick(['NotIn', 'Exists', 'DoesNotExist', 'In'] as const)
  const hasValues = operator === 'NotIn' || operator === 'In'
  const expression = { key: random.pick(KEYS), operator, values: hasValues ? ['a'] : [] }
  const matchExpressions = random.oneIn(2) ? [expression] : []
  return mkPolicy({ matchLabels, matchExpressions }, NAMESPACES[random.below(3)])
}

function randomLabels(random: Random): readonly string[] {
  const labels = new Set<string>()
  for (let i = random.below(4); i > 0; i--) {
    labels.add(
      `${random.pick(['k8s', 'external'])}:${random.pick(['app', 'tier'])}=${random.pick(['a', 'b'])}`,
    )
  }
  if (random.oneIn(2)) labels.add('k8s:io.kubernetes.pod.namespace=shop')
  return [...labels]
}

test('PolicyMatcher selects what a look at every policy selects, in their order, after any changes', () => {
  const random = new Random(20_261_121)
  const matcher = new PolicyMatcher()
  let policies: readonly Policy[] = []
  let selected = 0
  for (let round = 0; round < runsOf(300); round++) {
    const kept = policies.filter(() => !random.oneIn(4))
    const fresh = Array.from({ length: random.below(6) }, () => randomPolicy(random))
    const replaced = policies.map((each) => (random.oneIn(9) ? randomPolicy(random) : each))
    const next = random.pick([
      [...fresh, ...kept],
      [...kept, ...fresh],
      [...fresh, ...kept.toReversed()],
      replaced,
      [...replaced, ...fresh],
    ])
    const { added, removed } = matcher.set(next)
    assert.deepEqual(new Set(added), new Set(next.filter((each) => !policies.includes(each))))
    assert.deepEqual(new Set(removed), new Set(policies.filter((each) => !next.includes(each))))
    policies = next
    for (let i = 0; i < 8; i++) {
      const labels = randomLabels(random)
      const index = indexLabels(labels)
      const wanted = policies.filter((policy) => policySelects(policy, index))
      const { policies: have } = matcher.selecting(labels)
      assert.deepEqual(have, wanted, labels.join())
      selected += have.length
    }
  }
  assert.ok(selected > 2000, `${selected} selected`)
})

test('PolicyMatcher returns the same object until a change selects the labels, and equal keys for equal policies', () => {
  const matcher = new PolicyMatcher()
  const [a, b, every] = [
    mkPolicy({ matchLabels: new Map([['app', 'a']]) }),
    mkPolicy({ matchLabels: new Map([['app', 'b']]) }),
    mkPolicy({ matchLabels: new Map() }),
  ]
  matcher.set([a, b, every])
  const before = matcher.selecting(['k8s:app=a'])
  assert.deepEqual(before.policies, [a, every])
  matcher.set([a, every])
  assert.equal(matcher.selecting(['k8s:app=a']), before, 'b does not select it')
  const other = matcher.selecting(['k8s:app=a', 'k8s:pod=1'])
  assert.notEqual(other, before)
  assert.equal(other.key, before.key)
  matcher.set([a])
  assert.deepEqual(matcher.selecting(['k8s:app=a']).policies, [a])
  matcher.set([every, a])
  assert.deepEqual(matcher.selecting(['k8s:app=a']).policies, [every, a], 'in the order set last')
  assert.deepEqual(matcher.selecting(['k8s:app=c']).policies, [every])
})
