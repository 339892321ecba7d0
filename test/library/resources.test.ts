// External resources that a program gives its gate.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidInputError, type Gate } from '../../src/library.ts'
import { withGate } from '../support/nodes/library-gate.ts'

/** The number of resources. `status` shows it, because the bound is 1. */
function countOf(gate: Gate): number | null {
  return gate.status().limits.find(({ limit }) => limit === 'resources')?.use ?? 0
}

test('Gate.setResource resolves when the resource is in force, and a second equal call changes nothing', async () => {
  await withGate({ config: { limits: { resources: 1 } } }, async (gate) => {
    const db = { addresses: ['192.0.2.10'], labels: { app: 'db' }, ports: { pg: '5432/TCP' } }
    const first = await gate.setResource('db', db)
    assert.deepEqual([gate.status().datapath.revision, countOf(gate)], [first.revision, 1])
    assert.deepEqual(await gate.setResource('db', db), first)
    const second = await gate.setResource('db', { addresses: ['192.0.2.11'], ttl: '1h' })
    assert.ok(second.revision > first.revision)
    const rows: readonly (readonly [name: string, body: typeof db, fault: string])[] = [
      ['db', { ...db, addresses: ['nowhere'] }, 'resource: addresses[0]: '],
      ['', db, 'resource: name: '],
      ['more', db, 'resource: found 2 resources, limits.resources allows 1'],
    ]
    for (const [name, body, fault] of rows) {
      await assert.rejects(gate.setResource(name, body), (error) => {
        assert.ok(error instanceof InvalidInputError)
        assert.ok(error.message.startsWith(fault), error.message)
        return true
      })
    }
    const gone = await gate.removeResource('db')
    assert.ok(gone.revision > second.revision)
    assert.equal(countOf(gate), 0)
    assert.deepEqual(await gate.removeResource('db'), gone, 'nothing to do is no change')
  })
})
