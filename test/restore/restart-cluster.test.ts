// A start with the cluster's label, of a node that knew its endpoints without it. An earlier version gave no such label.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointRecord } from '../../src/enforcement/endpoint-control.ts'
import { IdentityLabels } from '../../src/policy/identity-labels.ts'
import { MemoryState } from '../support/models/memory-state.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

/** With `old`, the next node, whose endpoints have the label. */
function start(
  specs: readonly string[],
  disk: MemoryState,
  records: readonly EndpointRecord[],
  old?: Node,
): Node {
  const node = new Node({
    ...(old && { identityLabels: new IdentityLabels([], 'default') }),
    kept: { saved: disk.read(), sink: disk, bootAtZero: 0 },
    recorder: old?.recorder,
  })
  node.policies.setPolicies(mkPolicies(...specs), node.endpoints.registry)
  node.setEndpoints(records)
  return node
}

test('Endpoints that get the label of the cluster at a start keep their numbers and the verdicts about them', () => {
  const mk = (name: string, i: number) =>
    mkEndpoint(name, [`10.200.0.${i + 1}`], [`k8s:app=${name}`])
  const records = ['a', 'b', 'c'].map(mk)
  const [toB, toC] = ['{ matchLabels: { app: b } }', '{ matchLabels: { app: c } }']
  const denyC = `egressDeny: [ { toEndpoints: [ ${toC} ] } ]`
  const specs = [`egress: [ { toEndpoints: [ ${toB}, ${toC} ] } ]\n${denyC}`]
  const disk = new MemoryState()
  const old = start(specs, disk, records)
  old.takeOver()
  const verdicts = (node: Node): readonly string[] =>
    ['10.200.0.2', '10.200.0.3'].map((address) => node.verdict('a', address))
  let writes = 0
  old.recorder.onWrite = () => {
    writes++
    assert.deepEqual(verdicts(old), ['allow', 'deny'], `after write ${writes}`)
  }
  const next = start(specs, disk, records, old)
  next.takeOver()
  assert.ok(writes > 0, 'other labels are other identities')
  assert.equal(next.endpoint('a').id, old.endpoint('a').id)
  assert.deepEqual(verdicts(next), ['allow', 'deny'])
  assert.ok(next.labelsOf('10.200.0.2').includes('k8s:io.cilium.k8s.policy.cluster=default'))
  assert.deepEqual(next.differences(), [])
})
