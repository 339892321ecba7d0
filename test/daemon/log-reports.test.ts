import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flowView, keptText } from '../../src/admin/views/flows.ts'
import { formatFlow } from '../../src/cli/flows/flow-text.ts'
import { reportExpiredUse } from '../../src/daemon/log-reports.ts'
import { FlowTally } from '../../src/flows/flow-tally.ts'
import { SILENT } from '../../src/telemetry/silent.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../support/nodes/node.ts'

const GRACE = 60

test('reportExpiredUse records the endpoint, the name and the address of a connection, and the time since the TTL', () => {
  const node = new Node({ graceSeconds: GRACE })
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1', 'fd00::1'], ['k8s:app=shop'])])
  node.setPolicies(mkPolicies('egress: [ { toFQDNs: [ { matchPattern: "*" } ] } ]'))
  const { state } = mkAdmin(node)
  const { core, clock } = node
  core.expiry.onExpiredUse = (pair) => reportExpiredUse(state, SILENT, pair)
  const { id } = node.endpoint('shop')
  const wait = (seconds: number): void => {
    clock.advance(seconds * 1000)
    while (!core.expiry.step(1)) clock.advance(0)
    core.committer.commit()
  }
  const { connections } = node.recorder
  // While a connection is open, the daemon reads connections every few seconds.
  const open = (address: string): void => {
    connections.push({ endpoint: id, peer: prefixOf(address) })
  }
  node.learn(id, 'steady.example', ['192.0.2.1'], 0)
  open('192.0.2.1')
  wait(GRACE + 1)
  for (const address of ['192.0.2.2', '2001:db8::2', '192.0.2.2']) {
    node.learn(id, 'late.example', [address], 10)
    for (let s = 0; s < 25; s += 5) wait(5)
    open(address)
    wait(5)
    connections.pop()
    wait(5)
  }
  const flows = [0, 1].map((number) => flowView(state, number, 'expired-use'))
  assert.deepEqual(
    flows.map((flow) => flow?.kind === 'expired-use' && [flow.endpoint, flow.names, flow.peer]),
    [
      ['shop', ['late.example'], '192.0.2.2'],
      ['shop', ['late.example'], '2001:db8::2'],
    ],
  )
  const [first] = flows
  assert.ok(first?.kind === 'expired-use')
  assert.ok(first.expired >= 15 && first.expired <= 21, `${first.expired} s since the TTL of 10 s`)
  assert.deepEqual([first.verdict, first.endpointLabels], ['event', ['k8s:app=shop']])
  assert.match(
    formatFlow({ ...first }),
    /event shop {9}connected to 192\.0\.2\.2, \d+ s after the TTL of late\.example was over$/,
  )
  const kept: [text: string, count: number][] = []
  const tally = new FlowTally(state.flows, (number) => keptText(state, number))
  for (let number = 0; number < state.flows.count; number++) tally.add(number, 0)
  tally.drain(Infinity, ({ text, count }) => kept.push([text, count]) > 0, true)
  assert.deepEqual(
    kept.map(([text, count]) => [/"peer":"([^"]*)"/.exec(text)?.[1], count]),
    [
      ['192.0.2.2', 2],
      ['2001:db8::2', 1],
    ],
    'kept once for each address, however often it is used',
  )
})
