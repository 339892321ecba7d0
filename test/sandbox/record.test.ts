// `Recorder` counts the queries of a command by the flows that the proxy records for them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowKind } from '../../src/flows/record/flow-kinds.ts'
import { FlowRing } from '../../src/flows/record/flow-ring.ts'
import { Recorder } from '../../src/sandbox/record.ts'
import { mkDnsFlow } from '../support/nodes/dns-flow.ts'
import { Node } from '../support/nodes/node.ts'

const ROWS: readonly (readonly [
  kinds: readonly FlowKind[],
  asked: number,
  verdict: string,
  why: string,
])[] = [
  [['answered'], 1, 'allowed', 'one query'],
  [['answered', 'answered', 'answered'], 3, 'allowed', 'each query of an allowed name'],
  [['denied', 'denied', 'denied'], 3, 'denied', 'each query of a denied name'],
  [['not-ready', 'answered'], 2, 'denied', 'a query before the policy, and one after'],
  [['audited', 'answered'], 1, 'audited', 'a query under audit has two flows'],
  [
    ['audited', 'audited', 'answered', 'answered', 'audited', 'answered'],
    3,
    'audited',
    'queries under audit at the same time',
  ],
  [['audited', 'upstream-failed'], 1, 'audited', 'a query under audit that no server answers'],
  [['audited', 'overloaded'], 1, 'audited', 'a query under audit at a bound'],
  [['answered', 'audited', 'answered'], 2, 'audited', 'one query before the rule changed'],
  [['upstream-failed', 'upstream-failed'], 2, 'failed', 'no server answers'],
  [['upstream-failed', 'answered'], 2, 'allowed', 'a server answers the second query'],
  [['overloaded', 'answered'], 2, 'allowed', 'a bound was hit before'],
]

test('Recorder counts each query of a name once', () => {
  for (const [kinds, asked, verdict, why] of ROWS) {
    for (const isSplit of [false, true]) {
      const { flows, recorder } = mkRecorder()
      for (const kind of kinds) {
        flows.addDns(0, mkDnsFlow('www.example.com', { kind, qtype: 1 }))
        if (isSplit) recorder.look()
      }
      recorder.look()
      const record = recorder.names.get('www.example.com')
      assert.deepEqual([record?.asked, record?.verdict], [asked, verdict], why)
    }
  }
})

test('Recorder counts the queries of each name apart', () => {
  const { flows, recorder } = mkRecorder()
  flows.addDns(0, mkDnsFlow('a.example', { kind: 'audited' }))
  flows.addDns(0, mkDnsFlow('b.example', { kind: 'answered' }))
  flows.addDns(0, mkDnsFlow('a.example', { kind: 'answered' }))
  recorder.look()
  const counts = [...recorder.names.values()].map(({ name, asked }) => [name, asked])
  assert.deepEqual(counts, [
    ['a.example', 1],
    ['b.example', 1],
  ])
})

function mkRecorder(): { readonly flows: FlowRing; readonly recorder: Recorder } {
  const flows = new FlowRing()
  return { flows, recorder: new Recorder({ core: new Node().core, flows, dump: () => 0 }) }
}
