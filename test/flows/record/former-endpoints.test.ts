// Endpoints that are gone keep their names while the ring has flows of them, however many endpoints come and go.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FORMER_SLACK } from '../../../src/flows/record/former-endpoints.ts'
import { FLOW_CAPACITY, FlowRing } from '../../../src/flows/record/flow-ring.ts'
import { mkDnsFlow } from '../../support/nodes/dns-flow.ts'

const LABELS = ['k8s:app=shop']

function addFlows(ring: FlowRing, endpoint: number, count: number): void {
  const flow = mkDnsFlow('www.test', { kind: 'denied', endpoint })
  for (let i = 0; i < count; i++) ring.addDns(i, flow)
}

test('FormerEndpoints knows an endpoint until the ring has overwritten its last flow', () => {
  const ring = new FlowRing()
  addFlows(ring, 1, 1)
  ring.former.add({ id: 1, name: 'shop', labels: LABELS })
  assert.deepEqual(ring.former.get(1), { id: 1, name: 'shop', labels: LABELS })
  assert.equal(ring.former.get(2), undefined)
  const steps: readonly (readonly [flows: number, known: boolean, why: string])[] = [
    [0, true, 'the ring has nothing but the flow'],
    [FLOW_CAPACITY - 1, true, 'the flow is the oldest of a full ring'],
    [1, false, 'the flow is overwritten'],
  ]
  for (const [flows, known, why] of steps) {
    addFlows(ring, 2, flows)
    assert.equal(ring.former.isNamed('shop'), known, why)
  }
  assert.equal(ring.former.get(1), undefined)
})

test('FormerEndpoints is bounded when endpoints without flows come and go', () => {
  const ring = new FlowRing()
  const silent = 20 * FORMER_SLACK
  addFlows(ring, 1, 1)
  ring.former.add({ id: 1, name: 'shop', labels: LABELS })
  for (let id = 2; id < silent; id++) {
    ring.former.add({ id, name: `silent-${id}`, labels: [] })
    assert.ok(ring.former.size <= 2 * FORMER_SLACK, `${ring.former.size} after ${id}`)
  }
  assert.equal(ring.former.get(1)?.name, 'shop')
  assert.equal(ring.former.isNamed('silent-2'), false)
})

test('FormerEndpoints knows every endpoint when each flow of a full ring is of another one', () => {
  const ring = new FlowRing()
  const count = FLOW_CAPACITY + FORMER_SLACK
  for (let id = 1; id <= count; id++) {
    addFlows(ring, id, 1)
    ring.former.add({ id, name: `e${id}`, labels: [] })
  }
  for (let number = ring.oldest; number < ring.count; number++) {
    assert.equal(ring.former.get(ring.endpointOf(number))?.name, `e${number + 1}`)
  }
  assert.ok(ring.former.size <= 2 * FLOW_CAPACITY + FORMER_SLACK)
})
