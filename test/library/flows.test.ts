// Flows of a gate as an async iterator.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidInputError } from '../../src/library.ts'
import { policyText } from '../support/nodes/daemon-files.ts'
import { brief, job, take, withGate } from '../support/nodes/library-gate.ts'

test('Gate.flows gives decisions in their order, by kind and endpoint, and ends with the gate', async () => {
  const other = { name: 'other', addresses: ['127.0.0.2'] }
  const policies = { web: policyText('web', ['a.example'], { app: 'job' }) }
  await withGate({ policies, endpoints: [job, other] }, async (gate, ask) => {
    const all = gate.flows()
    const denied = gate.flows({ only: 'deny' })
    const others = gate.flows({ endpoint: 'other', only: 'answered' })
    await ask('a.example')
    await ask('b.example')
    await ask('c.example', '127.0.0.2')
    assert.deepEqual((await take(all, 2)).map(brief), [
      'answered job a.example',
      'denied job b.example',
    ])
    assert.deepEqual(await all.next(), { done: true, value: undefined }, 'a loop that broke off')
    const [flow] = await take(denied, 1)
    assert.equal(flow?.verdict, 'deny')
    const waiting = others.next()
    assert.equal((await waiting).value?.endpoint, 'other')
    const kept = await take(gate.flows({ kept: true }), 3)
    assert.equal(kept.length, 3)
    const last = gate.flows()
    const pending = [last.next(), last.next()]
    await ask('d.example', '127.0.0.2')
    await gate.stop()
    const results = await Promise.all(pending)
    assert.deepEqual(
      results.map(({ done }) => done),
      [false, true],
    )
    assert.deepEqual(await take(gate.flows(), 1), [], 'after the end')
  })
})

test('Gate.flows of a slow reader drops flows beyond its bound, and counts them', async () => {
  await withGate({ endpoints: [job] }, async (gate, ask) => {
    const slow = gate.flows({ bound: 3 })
    const quick = gate.flows()
    for (let i = 0; i < 10; i++) await ask(`n${i}.example`)
    assert.deepEqual((await take(slow, 3)).map(brief), [
      'answered job n7.example',
      'answered job n8.example',
      'answered job n9.example',
    ])
    assert.equal(slow.dropped, 7)
    assert.equal((await take(quick, 10)).length, 10)
    assert.equal(quick.dropped, 0)
    for (const bound of [0, 1.5, 65_537, Number.NaN]) {
      assert.throws(() => gate.flows({ bound }), InvalidInputError)
    }
  })
})
