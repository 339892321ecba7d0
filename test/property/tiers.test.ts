// ClusterNetworkPolicies beside other policies. Every verdict of the recorded datapath and of `explain` is that of the text of the API,
// read naively (test/support/models/naive-policy.ts). On every write of a change, a flow that is allowed before and after is allowed.
// NAMEGATE_SEED=n replays one run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../src/explain/explain.ts'
import { formatFlow, PolicyRun, runChanges } from '../support/models/policy-run.ts'
import { randomPolicy } from '../support/models/random-policy.ts'
import { randomTierPolicy } from '../support/models/random-tiers.ts'
import { runsOf } from '../support/properties.ts'

const RUNS = runsOf(10)
const OPTIONS = {
  cidrMatchesEndpoints: true,
  policy: (random: PolicyRun['random'], i: number) =>
    random.oneIn(3) ? randomPolicy(random, i) : randomTierPolicy(random, i),
}

function seeds(): readonly number[] {
  const replay = Number(process.env['NAMEGATE_SEED'] ?? 0)
  return replay === 0 ? Array.from({ length: RUNS }, (_, i) => i + 1) : [replay]
}

function withSeed(seed: number, body: () => void): void {
  try {
    body()
  } catch (error) {
    throw new Error(`NAMEGATE_SEED=${seed} replays ${String(error)}`, { cause: error })
  }
}

test('Transition between policies with tiers cuts no flow that is allowed before and after, and ends where the API does', () => {
  for (const seed of seeds()) withSeed(seed, () => runChanges(seed, OPTIONS))
})

test('explain agrees with the API about policies with tiers, and names a rule that covers the flow', () => {
  const seen = new Map<string, number>()
  for (const seed of seeds()) {
    withSeed(seed, () => {
      const run = new PolicyRun(seed, OPTIONS)
      for (let i = 0; i < 10; i++) run.learn()
      run.policies = run.randomPolicies(4)
      run.node.setPolicies(run.policies)
      const expected = run.verdicts()
      run.flows.forEach((flow, i) => {
        const { core, policies } = run.node
        const { id, labels, hook } = run.node.endpoint(flow.endpoint)
        const { peer, port, protocol } = flow
        const question = { kind: 'connect', address: peer, port, protocol } as const
        // Without own addresses, because no packet to them is judged.
        const found = explain(
          { core, policies },
          { id, labels, hook, addresses: [], audited: undefined },
          question,
        )
        assert.equal(found?.verdict, expected[i], formatFlow(flow))
        for (const { tier = 'none', action } of found?.rules ?? []) {
          const key = `${tier.split(' ')[0]} ${action}`
          seen.set(key, (seen.get(key) ?? 0) + 1)
        }
      })
    })
  }
  const kinds = [
    'Admin allow',
    'Admin deny',
    'Baseline allow',
    'Baseline deny',
    'none allow',
    'none deny',
  ]
  assert.deepEqual([...seen.keys()].toSorted(), kinds, 'rules of every tier decide')
})
