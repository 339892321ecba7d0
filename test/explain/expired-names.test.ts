// What refusals and explanations say of an address whose name has expired: the name, and that it has to be asked again. No line of an
// allow-list with the address is proposed, and no other name.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linesForPacket } from '../../src/admin/page/allow-lines.ts'
import { flowView } from '../../src/admin/views/flows.ts'
import { Refusals } from '../../src/cli/up/refusals.ts'
import { formatFlow } from '../../src/cli/flows/flow-text.ts'
import { ruleId } from '../../src/core/ids.ts'
import { formatAddress } from '../../src/core/ip.ts'
import type { DatapathEvent } from '../../src/datapath/entries.ts'
import { FlowBegins, packetFlowOf } from '../../src/flows/record/packet-flow.ts'
import { WORLD_IPV4 } from '../../src/identity/reserved.ts'
import { loadPolicies } from '../../src/policy/load/load.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { MemoryState } from '../support/models/memory-state.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import { connect, explainOn } from '../support/nodes/explain.ts'
import { mkEndpoint, Node, prefixOf } from '../support/nodes/node.ts'

const FILE = '/etc/web.allow'
const LIST = 'first.test\nwww.shop.test\n'
const ADDRESS = '203.0.113.9'
const OTHER = '203.0.113.10'
/** The TTL, the grace and a look at the connections. */
const EXPIRED_MS = 3_600_000
const SAID = 'the answer of www.shop.test with this address has expired: ask the name again'

interface Before {
  readonly clock: FakeClock
  readonly disk: MemoryState
  readonly old?: Node
}

function mkNode({ clock, disk, old }: Before): Node {
  const kept = { saved: disk.read(), sink: disk, bootAtZero: 0 }
  const node = new Node({ clock, kept, recorder: old?.recorder })
  const { policies } = loadPolicies(LIST, FILE)
  node.policies.setPolicies(policies, node.endpoints.registry)
  node.setEndpoints([mkEndpoint('a', ['10.200.0.1'], ['k8s:app=a'])])
  return node
}

function expire(node: Node): void {
  while (!node.core.expiry.step(1)) node.clock.advance(0)
}

/** The flow of a dropped packet of endpoint a. */
function dropped(node: Node, address: string) {
  const { state } = mkAdmin(node)
  const { family, octets } = prefixOf(address)
  const peer = new Uint8Array(16)
  peer.set(octets)
  const event: DatapathEvent = {
    endpoint: node.endpoint('a').id,
    family,
    peer,
    protocol: 6,
    port: 443,
    localPort: 40_000,
    opening: true,
    identity: WORLD_IPV4,
    rule: ruleId(0),
    verdict: 'deny',
    reason: 'policy',
    seen: node.clock.now(),
    age: 0,
  }
  const parts = { core: node.core, policies: node.policies, flowBegins: new FlowBegins() }
  state.flows.addPacket(node.clock.wall(), packetFlowOf(parts, event))
  const flow = flowView(state, state.flows.count - 1, undefined)
  assert.ok(flow?.kind === 'drop')
  assert.equal(flow.peer, formatAddress(family, octets))
  return flow
}

function check(node: Node): void {
  const flow = dropped(node, ADDRESS)
  assert.deepEqual([flow.names, flow.expiredName], [[], 'www.shop.test'])
  assert.ok(formatFlow(flow).includes(SAID), formatFlow(flow))
  assert.ok(!formatFlow(flow).includes(`add ${ADDRESS}`), formatFlow(flow))
  const line = new Refusals({ file: FILE, isMade: true }).take(flow)
  assert.match(
    line ?? '',
    /203\.0\.113\.9:443\/tcp \(www\.shop\.test\) +its answer has expired; ask the name again$/,
  )
  assert.equal(linesForPacket(flow), undefined)
  const found = explainOn(node, connect({ address: ADDRESS }, '443'))
  assert.equal(found.verdict, 'deny')
  assert.equal(found.add, null)
  assert.equal(found.nearest?.line, 2, 'the line of the name')
  assert.ok(found.notes.includes(SAID), found.notes.join())

  const other = dropped(node, OTHER)
  assert.deepEqual([other.names, other.expiredName], [[], null])
  assert.match(formatFlow(other), /add 203\.0\.113\.10:443\/tcp/)
}

test('A refusal of an address whose name has expired says to ask the name again', () => {
  const clock = new FakeClock()
  const node = mkNode({ clock, disk: new MemoryState() })
  node.learn(node.endpoint('a').id, 'www.shop.test', [ADDRESS])
  clock.advance(EXPIRED_MS)
  expire(node)
  check(node)
  node.learn(node.endpoint('a').id, 'www.shop.test', [ADDRESS])
  assert.equal(explainOn(node, connect({ address: ADDRESS }, '443')).verdict, 'allow')
  assert.equal(dropped(node, ADDRESS).expiredName, null, 'the name is known again')
})

test('A refusal says so also of a name that expired while the daemon was down', () => {
  const clock = new FakeClock()
  const disk = new MemoryState()
  const old = mkNode({ clock, disk })
  old.learn(old.endpoint('a').id, 'www.shop.test', [ADDRESS])
  old.takeOver()
  clock.advance(1000)
  disk.flush()
  clock.advance(EXPIRED_MS)
  const next = mkNode({ clock, disk, old })
  next.takeOver('grace')
  expire(next)
  check(next)
})
