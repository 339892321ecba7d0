// Which document decides about an answer, by the names that its toFQDNs match.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AnswerRules,
  answerRulesOf,
  type AnswerDefaults,
  type Mutable,
} from '../../../src/policy/compile/answer-rules.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import type { AnswerOverrides, Policy } from '../../../src/policy/rule.ts'
import { wireOf } from '../../support/nodes/node.ts'

const DEFAULTS: AnswerDefaults = { minTtl: 5, grace: 60, cnameMatch: 'question', svcb: 'learn' }

function policy(patterns: readonly string[], answers?: AnswerOverrides): Policy {
  const toFQDNs = patterns.map((pattern) => `{ matchPattern: "${pattern}" }`).join(', ')
  const { policies } = loadPolicies(
    `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: p }
spec: { endpointSelector: {}, egress: [{ toFQDNs: [${toFQDNs}] }] }
`,
    'p.yaml',
  )
  const [loaded] = policies
  assert.ok(loaded !== undefined)
  return answers === undefined ? loaded : { ...loaded, answers }
}

const ROWS: readonly (readonly [
  reason: string,
  policies: readonly Policy[],
  name: string,
  want: Partial<AnswerDefaults>,
])[] = [
  ['a name of no document', [policy(['a.example'], { minTtl: 60 })], 'b.example', {}],
  ['a name of the document', [policy(['*.example'], { minTtl: 60 })], 'b.example', { minTtl: 60 }],
  [
    'shorter than the configuration',
    [policy(['*.example'], { minTtl: 0 })],
    'b.example',
    { minTtl: 0 },
  ],
  [
    'several patterns of one document',
    [policy(['*.example', 'b.example', '*'], { svcb: 'pass' })],
    'b.example',
    { svcb: 'pass' },
  ],
  [
    'the longest min-ttl of two documents',
    [policy(['*.example'], { minTtl: 60 }), policy(['b.example'], { minTtl: 90 })],
    'b.example',
    { minTtl: 90 },
  ],
  [
    'the longest grace, or the configuration’s',
    [policy(['*.example'], { grace: 5 }), policy(['b.example'], { minTtl: 9 })],
    'b.example',
    { grace: 60, minTtl: 9 },
  ],
  ['a shorter grace', [policy(['*.example'], { grace: 0 })], 'b.example', { grace: 0 }],
  [
    'a document without annotations counts as the configuration',
    [policy(['*.example'], { minTtl: 1 }), policy(['b.example'])],
    'b.example',
    { minTtl: 5 },
  ],
  [
    'one that wants the chain is enough',
    [
      policy(['*.example'], { cnameMatch: 'question' }),
      policy(['b.example'], { cnameMatch: 'chain' }),
    ],
    'b.example',
    { cnameMatch: 'chain' },
  ],
  [
    'strip before learn, whatever the order',
    [policy(['*.example'], { svcb: 'strip' }), policy(['b.example'])],
    'b.example',
    { svcb: 'strip' },
  ],
  [
    'strip before pass',
    [policy(['*.example'], { svcb: 'pass' }), policy(['b.example'], { svcb: 'strip' })],
    'b.example',
    { svcb: 'strip' },
  ],
  [
    'pass before learn',
    [policy(['*.example'], { svcb: 'learn' }), policy(['b.example'], { svcb: 'pass' })],
    'b.example',
    { svcb: 'pass' },
  ],
]

test('AnswerRules.read uses documents about a name, else the configuration', () => {
  for (const [reason, policies, name, want] of ROWS) {
    for (const list of [policies, policies.toReversed()]) {
      const out: Mutable<AnswerDefaults> = {
        minTtl: -1,
        grace: -1,
        cnameMatch: 'chain',
        svcb: 'pass',
      }
      new AnswerRules(list).read(wireOf(name), DEFAULTS, out)
      assert.deepEqual(out, { ...DEFAULTS, ...want }, reason)
    }
  }
})

test('answerRulesOf is undefined when no document has annotations', () => {
  assert.equal(answerRulesOf([policy(['a.example'])]), undefined)
  assert.ok(answerRulesOf([policy(['a.example']), policy(['b.example'], { minTtl: 1 })]))
})
