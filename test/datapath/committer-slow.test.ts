// The committer over a datapath whose commits end later than they begin. Meanwhile changes gather. Rows settle with what was submitted, and
// count as in force only when it is.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Committer } from '../../src/datapath/committer.ts'
import { stalePolicies } from '../../src/reconcile/stale-entries.ts'
import { mkPolicies } from '../support/nodes/node.ts'
import { finish, learn, mkSlow, WILD } from '../support/nodes/slow-node.ts'

function revisions({ revision, desired, isUnderWay }: Committer): readonly unknown[] {
  return [revision, desired, isUnderWay]
}

test('Committer counts a revision when its commit ended, and gathers the changes until then', () => {
  const { node, slow } = mkSlow()
  const { committer } = node.core
  const start = committer.revision
  const first = learn(node, 'a.x', '192.0.2.1')
  const { id } = node.endpoint('a')
  assert.deepEqual(revisions(committer), [start, start + 1, true])
  const [second, third] = [learn(node, 'b.x', '192.0.2.2'), learn(node, 'c.x', '192.0.2.3')]
  assert.deepEqual(revisions(committer), [start, start + 2, true])
  const states = () =>
    [first, second, third].map((row) => [committer.isApplied(row), committer.isPending(row, id)])
  assert.deepEqual(states(), [
    [false, true],
    [false, true],
    [false, true],
  ])
  slow.end()
  assert.deepEqual(
    revisions(committer),
    [start + 1, start + 2, true],
    'the next one began by itself',
  )
  assert.deepEqual(states(), [
    [true, false],
    [false, true],
    [false, true],
  ])
  slow.end()
  assert.deepEqual(revisions(committer), [start + 2, start + 2, false])
  assert.equal(slow.takeWrites().commits, 2, 'both later ones went together')
  assert.deepEqual(states(), [
    [true, false],
    [true, false],
    [true, false],
  ])
  finish(node, slow)
})

test('Committer begins no commit for changes that were undone meanwhile', () => {
  const { node, slow } = mkSlow()
  const { committer } = node.core
  learn(node, 'a.x', '192.0.2.1')
  learn(node, 'b.x', '192.0.2.2')
  node.core.names.forget(2)
  committer.commit()
  const wanted = committer.desired
  slow.end()
  assert.equal(committer.isUnderWay, false)
  assert.ok(committer.revision < wanted, 'the foreseen revision has no changes')
  finish(node, slow)
})

test('Committer settles a row with what it submitted, whatever is wanted by then', () => {
  const { node, slow } = mkSlow()
  const { prefixes } = node.core.ipcache
  const row = learn(node, 'a.x', '192.0.2.1')
  const first = node.identityOf('192.0.2.1')
  learn(node, 'a.y', '192.0.2.1')
  node.core.names.forget(1)
  node.core.committer.commit()
  const second = node.identityOf('192.0.2.1')
  assert.notEqual(second, first)
  slow.end()
  assert.equal(prefixes.applied[row], first, 'the kernel has this')
  assert.equal(node.core.committer.isApplied(row), false)
  slow.end()
  assert.equal(prefixes.applied[row], second)
  finish(node, slow)
})

test('Committer counts a row on its way to another identity as not in force, also when the old one is wanted again', () => {
  const { node, slow } = mkSlow()
  const { committer, ipcache } = node.core
  const row = learn(node, 'a.x', '192.0.2.1')
  slow.drain()
  const { id } = node.endpoint('a')
  const before = node.identityOf('192.0.2.1')
  learn(node, 'a.y', '192.0.2.1')
  node.core.names.forget(1)
  committer.commit()
  learn(node, 'a.x', '192.0.2.1')
  assert.equal(ipcache.prefixes.wanted[row], before)
  assert.equal(ipcache.prefixes.applied[row], before, 'as confirmed, but a commit changes it')
  assert.deepEqual([committer.isApplied(row), committer.isPending(row, id)], [false, true])
  slow.drain()
  assert.deepEqual([committer.isApplied(row), committer.isPending(row, id)], [true, false])
  finish(node, slow)
})

test('Committer frees no row during its commit, and gives its number to no other address', () => {
  const { node, slow } = mkSlow()
  const row = learn(node, 'a.x', '192.0.2.1')
  node.core.names.forget(1)
  node.core.committer.commit()
  assert.notEqual(learn(node, 'b.x', '192.0.2.2'), row)
  assert.equal(node.rowOf('192.0.2.1'), row)
  slow.end()
  assert.equal(node.rowOf('192.0.2.1'), row, 'in force now, and to be removed')
  slow.drain()
  assert.equal(node.rowOf('192.0.2.1'), 0)
  finish(node, slow)
})

test('Committer keeps refused changes of a running commit, and tries them again', () => {
  const { node, slow } = mkSlow()
  const { committer } = node.core
  const row = learn(node, 'a.x', '192.0.2.1')
  const { id } = node.endpoint('a')
  slow.refuse = ({ key }) => key === '192.0.2.1/32'
  slow.end()
  assert.deepEqual([committer.isApplied(row), committer.isPending(row, id)], [false, false])
  assert.deepEqual([committer.refused, committer.failures], [1, 1])
  slow.refuse = () => false
  committer.retry()
  committer.commit()
  assert.equal(committer.isPending(row, id), true)
  finish(node, slow)
  assert.equal(committer.isApplied(row), true)
})

test('Committer never restores a refused policy entry that was decided again during the commit', () => {
  const { node, slow } = mkSlow({ staticIdentities: 0 })
  const row = learn(node, 'a.x', '192.0.2.1')
  node.core.names.forget(1)
  node.core.committer.commit()
  slow.refuse = ({ section, action }) => section === 'policy' && action === 'upsert'
  slow.end()
  slow.refuse = () => false
  finish(node, slow)
  assert.equal(node.core.ipcache.prefixes.applied[row], 0)
  assert.deepEqual([...slow.policies.keys()], [])
})

test('Committer counts an address in force as pending while the policy of the asking endpoint is in a running commit', () => {
  const only = (name: string) => `endpointSelector: { matchLabels: { app: ${name} } }\n${WILD}`
  const { node, slow } = mkSlow({}, only('a'), {
    a: ['k8s:app=a'],
    b: ['k8s:app=b'],
  })
  const { committer } = node.core
  const row = learn(node, 'a.x', '192.0.2.1')
  slow.drain()
  node.policies.setPolicies(mkPolicies(only('a'), only('b')), node.endpoints.registry)
  node.transition.begin()
  const pending = () => ['a', 'b'].map((name) => committer.isPending(row, node.endpoint(name).id))
  while (!slow.isBusy) node.transition.step(0)
  assert.equal(committer.isApplied(row), true)
  assert.deepEqual(pending(), [false, true], 'the commit has nothing for the other endpoint')
  slow.end()
  assert.deepEqual(pending(), [false, false])
  while (!node.transition.step(0)) slow.end()
  finish(node, slow)
})

test('Committer counts an address in force as pending while its endpoint is not in force', () => {
  const { node, slow } = mkSlow({}, WILD)
  const { committer } = node.core
  const row = learn(node, 'a.x', '192.0.2.1')
  slow.drain()
  learn(node, 'b.x', '192.0.2.2')
  const { id } = node.endpoint('a')
  assert.equal(committer.isPending(row, id), false)
  node.endpoints.setAudit(node.endpoint('a'), true)
  committer.commit()
  assert.equal(committer.isPending(row, id), true, 'waits for its turn')
  slow.end()
  assert.equal(committer.isPending(row, id), true, 'in a running commit')
  slow.refuse = ({ section }) => section === 'endpoint'
  slow.end()
  learn(node, 'c.x', '192.0.2.3')
  assert.equal(committer.isPending(row, id), false, 'refused: no commit has it')
  slow.refuse = () => false
  finish(node, slow)
})

test('Committer.commitExtra makes its changes from the present state when the datapath is free', () => {
  const { node, slow } = mkSlow()
  const restored = slow.dump()
  learn(node, 'a.x', '192.0.2.1')
  let made = 0
  const ids = (): Set<never> => {
    made++
    return new Set()
  }
  node.core.committer.commitExtra(() => stalePolicies(node.core, restored, ids(), new Set()))
  assert.equal(made, 0)
  slow.end()
  assert.equal(made, 1)
  const row = learn(node, 'b.x', '192.0.2.2')
  slow.end()
  assert.equal(
    node.core.committer.isApplied(row),
    false,
    'the removal of leftovers ended, and this commit runs',
  )
  slow.drain()
  assert.equal(node.core.committer.isApplied(row), true)
  assert.deepEqual(node.differences(), [])
})

test('Committer.underWayMs returns how long the present commit has run', () => {
  const { node, slow } = mkSlow()
  const { committer } = node.core
  assert.equal(committer.watch.underWayMs, 0)
  learn(node, 'a.x', '192.0.2.1')
  node.clock.advance(1500)
  assert.equal(committer.watch.underWayMs, 1500)
  learn(node, 'b.x', '192.0.2.2')
  slow.end()
  assert.equal(committer.watch.underWayMs, 0, 'of the next one')
  slow.end()
  assert.equal(committer.watch.underWayMs, 0)
})
