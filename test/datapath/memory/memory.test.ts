import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policy, settle } from '../../contract/bench.ts'
import { makeMemoryBench } from '../../contract/memory-bench.ts'

test('stop without leaveEnforcing empties the datapath', () => {
  const bench = makeMemoryBench()
  settle(bench, [policy({})])
  bench.datapath.mode.set('audit')
  bench.datapath.stop({ leaveEnforcing: false })
  const dump = bench.datapath.start()
  assert.deepEqual(
    [dump.mode, dump.prefixes.count, dump.policies.length, dump.endpoints.length],
    ['enforce', 0, 0, 0],
  )
})

test('hooks.stateOf reports that memory fences nothing', () => {
  const bench = makeMemoryBench()
  settle(bench, [])
  const [endpoint] = bench.datapath.dump().endpoints
  assert.ok(endpoint !== undefined)
  assert.deepEqual(bench.datapath.hooks.stateOf(endpoint.id), { kind: 'unfenced' })
  assert.equal(endpoint.hookKey, 'interface:lxc1')
})
