// A change of policy over a datapath whose commits end later than they begin still runs step by step.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mkPolicies } from '../support/nodes/node.ts'
import { finish, learn, mkSlow, WILD } from '../support/nodes/slow-node.ts'

test('Transition begins a step of policy only when the step before is in force, and reports that it continues', () => {
  const { node, slow } = mkSlow()
  learn(node, 'a.x', '192.0.2.1')
  slow.drain()
  node.policies.setPolicies(
    mkPolicies(WILD, 'egressDeny: [ { toCIDR: [ 192.0.2.0/24 ] } ]'),
    node.endpoints.registry,
  )
  node.transition.begin()
  const seen: string[] = []
  const note = (): void => {
    const verdict = node.verdict('a', '192.0.2.1')
    if (seen.at(-1) !== verdict) seen.push(verdict)
  }
  slow.onWrite = note
  let waits = 0
  let woken = true
  for (let i = 0; i < 1000 && node.transition.pending; i++) {
    if (!woken) {
      // Other endpoints continue to learn. The datapath is never idle, and the transition still ends.
      learn(node, `n${i}.x`, `198.51.100.${i}`)
      slow.end()
      continue
    }
    if (!node.transition.step(0) && node.transition.isWaiting) {
      waits++
      woken = false
      node.transition.whenReady(() => (woken = true))
    }
  }
  assert.equal(node.transition.pending, false)
  assert.ok(waits >= 3, `${waits} waits`)
  assert.equal(node.transition.realizedRevision, node.policies.revision)
  assert.deepEqual(seen, ['allow', 'deny'], 'no other verdict on the way')
  finish(node, slow)
})

test('Transition does not continue before the commit of its step has ended, however often it is asked', () => {
  const { node, slow } = mkSlow()
  const dns = `toPorts: [ { ports: [ { port: "53", protocol: ANY } ], rules: { dns: [ { matchName: b.x } ] } } ]`
  const policies = mkPolicies(`egress: [ { toCIDR: [ 192.0.2.0/24 ] }, { ${dns} } ]`)
  assert.equal(node.mayAsk('a', 'c.x'), true)
  node.policies.setPolicies(policies, node.endpoints.registry)
  node.transition.begin()
  for (let i = 0; i < 5; i++) assert.equal(node.transition.step(Infinity), false)
  assert.equal(node.mayAsk('a', 'c.x'), true, 'the rules before are in force until then')
  slow.end()
  assert.equal(node.transition.step(Infinity), false)
  assert.equal(node.mayAsk('a', 'c.x'), false)
  while (!node.transition.step(Infinity)) slow.end()
  finish(node, slow)
})

test('Transition.finished waits for a slow datapath', async () => {
  const { node, slow } = mkSlow()
  node.policies.setPolicies(mkPolicies(WILD, WILD), node.endpoints.registry)
  node.transition.begin()
  let isDone = false
  const done = node.transition.finished().then(() => (isDone = true))
  for (let i = 0; i < 100 && !isDone; i++) {
    slow.end()
    await Promise.resolve()
  }
  assert.equal(isDone, true)
  await done
  assert.equal(node.transition.pending, false)
  finish(node, slow)
})
