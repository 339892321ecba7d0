// Endpoints that no policy selects, with the default of each.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointRows } from '../../src/admin/views/endpoints.ts'
import { statusView } from '../../src/admin/views/status.ts'
import { DEFAULT_EGRESS_KEY, type DefaultEgress } from '../../src/policy/compile/default-egress.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

const SHOP = mkPolicies(
  'endpointSelector: { matchLabels: { app: shop } }\negress: [{ toEntities: [host] }]',
)
const OPEN = 'open: no policy selects it'
const OPEN_ROWS: readonly (readonly [
  why: string,
  egress: DefaultEgress,
  labels: readonly string[],
  enforcing: boolean,
  reason: string,
  warned: number,
])[] = [
  ['the node allows', 'allow', ['k8s:app=web'], false, OPEN, 1],
  ['the node audits', 'audit', ['k8s:app=web'], false, OPEN, 0],
  ['the node denies', 'deny', ['k8s:app=web'], true, '', 0],
  ['what it asked for is all it gets', 'allow-named', ['k8s:app=web'], true, '', 0],
  ['a label of its own allows', 'deny', [`k8s:${DEFAULT_EGRESS_KEY}=allow`], false, OPEN, 0],
  ['a label of its own denies', 'allow', [`k8s:${DEFAULT_EGRESS_KEY}=deny`], true, '', 0],
]
for (const [why, defaultEgress, labels, enforcing, reason, warned] of OPEN_ROWS) {
  test(`endpointRows shows an endpoint that no policy selects: ${why}`, () => {
    const node = new Node({ defaultEgress })
    node.recorder.hook = { kind: 'attached' }
    node.setEndpoints([
      mkEndpoint('web', ['10.0.0.1'], labels),
      mkEndpoint('shop', ['10.0.0.2'], ['k8s:app=shop']),
    ])
    node.setPolicies(SHOP)
    const { state } = mkAdmin(node)
    assert.deepEqual(
      [...endpointRows(state)].map((row) => [row.enforcing, row.reason]),
      [
        [enforcing, reason],
        [true, ''],
      ],
    )
    const { endpoints, warnings } = statusView(state)
    assert.equal(endpoints.enforcing, enforcing ? 2 : 1)
    const warning = 'default-egress is allow, and no policy selects endpoint web: it is open'
    assert.deepEqual(warnings, warned > 0 ? [warning] : [])
  })
}

test('statusView names the first of many endpoints that are open', () => {
  const node = new Node()
  node.setEndpoints(
    Array.from({ length: 7 }, (_, i) => mkEndpoint(`web-${i}`, [`10.0.0.${i + 1}`])),
  )
  assert.deepEqual(statusView(mkAdmin(node).state).warnings, [
    'default-egress is allow, and no policy selects endpoints web-0, web-1, web-2, web-3 and 3 more: they are open',
  ])
})
