import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeLimits } from '../../src/core/limits.ts'
import { configKeyOf, isWorthALine, limitUses } from '../../src/telemetry/limits.ts'
import { mkSources } from '../support/nodes/metrics.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

test('isWorthALine is true from 80 % on, and for what was hit', () => {
  const rows: readonly (readonly [
    use: number | undefined,
    hits: number,
    isSo: boolean,
    reason: string,
  ])[] = [
    [79, 0, false, 'below'],
    [80, 0, true, 'at 80 %'],
    [100, 0, true, 'at the bound'],
    [undefined, 0, false, 'a bound per client has no use'],
    [1, 1, true, 'it was hit once and has room again'],
    [undefined, 1, true, 'a bound per client that was hit'],
  ]
  for (const [use, hits, isSo, reason] of rows) {
    assert.equal(isWorthALine({ limit: 'pairs', use, bound: 100, hits }), isSo, reason)
  }
})

test('configKeyOf gives what to change in the config', () => {
  const keyOf = (limit: string) => configKeyOf({ limit, use: 1, bound: 1, hits: 1 })
  assert.equal(keyOf('pairs'), 'limits.pairs')
  assert.equal(keyOf('flows.max-size'), 'flows.max-size')
})

test('limitUses reads use, bound and hits of what is enforced', () => {
  const node = new Node({ pairs: 3 })
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
  node.setPolicies(mkPolicies('egress: [{ toFQDNs: [{ matchPattern: "*.x" }] }]'))
  for (const n of [1, 2, 3, 4]) node.learn(node.endpoint('shop').id, 'a.x', [`192.0.2.${n}`])
  const { upstream, listeners, responder } = mkSources(node)
  const uses = limitUses({
    bounds: makeLimits({ pairs: 3 }),
    core: node.core,
    endpoints: node.endpoints,
    resources: { count: 7, refusals: 2 },
    upstream,
    tcp: listeners.tcp,
    responder,
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
