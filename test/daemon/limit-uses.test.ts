import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeLimits } from '../../src/core/limits.ts'
import { limitUses } from '../../src/daemon/limit-uses.ts'
import { mkSources } from '../support/nodes/metrics.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

test('limitUses reads use, bound and hits of enforced limits', () => {
  const node = new Node({ pairs: 3 })
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
  node.setPolicies(mkPolicies('egress: [{ toFQDNs: [{ matchPattern: "*.x" }] }]'))
  for (const n of [1, 2, 3, 4]) node.learn(node.endpoint('shop').id, 'a.x', [`192.0.2.${n}`])
  const uses = limitUses({
    config: { limits: makeLimits({ pairs: 3 }) },
    core: node.core,
    endpoints: node.endpoints,
    resources: { count: 7 },
    sources: { apiResources: { refusals: 2 } },
    proxy: mkSources(node).proxy,
  })
  const of = (limit: string) => uses.find((each) => each.limit === limit)
  assert.deepEqual(of('pairs'), { limit: 'pairs', use: 3, bound: 3, hits: 1 })
  assert.deepEqual(of('endpoints'), { limit: 'endpoints', use: 1, bound: 10_000, hits: 0 })
  assert.deepEqual(of('resources'), { limit: 'resources', use: 7, bound: 200_000, hits: 2 })
  assert.deepEqual(of('queries-in-flight'), {
    limit: 'queries-in-flight',
    use: 5,
    bound: 65_536,
    hits: 1,
  })
  assert.equal(of('policy-entries')?.use, node.core.policyMaps.sizeOf(node.endpoint('shop').id))
  assert.equal(new Set(uses.map(({ limit }) => limit)).size, uses.length)
})
