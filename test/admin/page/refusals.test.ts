// The rows of refusals that the page shows.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Folded } from '../../../src/admin/page/refusals.ts'
import type { DnsFlowShape } from '../../../src/admin/document/flow-shapes.ts'
import { DROP_SHAPE } from '../../support/nodes/packet-shape.ts'

test('Folded shows that a refused address is guarded', () => {
  const folded = new Folded(10, () => true)
  folded.add(DROP_SHAPE)
  folded.add({ ...DROP_SHAPE, peer: '169.254.169.254', guarded: true })
  assert.deepEqual(
    folded.rows.map(({ what, guarded }) => [what, guarded]),
    [
      ['203.0.113.9 443/TCP', false],
      ['169.254.169.254 443/TCP', true],
    ],
  )
})

const DENIED: DnsFlowShape = {
  number: 1,
  time: '',
  kind: 'denied',
  verdict: 'deny',
  endpoint: 'a',
  endpointLabels: [],
  client: '10.0.0.1',
  name: 'www.example.org',
  type: 'A',
  rcode: null,
  outcome: null,
  addresses: 0,
  reason: null,
  rules: [],
}

test('Folded makes one row of the types of a name, because most programs ask for A and AAAA together', () => {
  const folded = new Folded(10, () => true)
  for (const type of ['A', 'AAAA', 'A']) folded.add({ ...DENIED, type })
  folded.add({ ...DENIED, type: 'AAAA', reason: 'server 192.0.2.9 is not trusted' })
  assert.deepEqual(
    folded.rows.map(({ what, types, count }) => [what, types, count]),
    [
      ['www.example.org', ['A', 'AAAA'], 3],
      ['www.example.org', ['AAAA'], 1],
    ],
  )
})
