// Events about policies with faults: their texts, their times and the node that writes them, with a model of the API server on fake time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RandomPool } from '../../src/core/random.ts'
import { PAUSE_MS, REPEAT_MS } from '../../src/kubernetes/events/policy-events.ts'
import type { Fault } from '../support/kubernetes/memory-api.ts'
import { status } from '../support/kubernetes/api-statuses.ts'
import { EventsLab, LEASE_MS } from '../support/kubernetes/events-lab.ts'

const LEASE_S = LEASE_MS / 1000
/** More than any wait of a standby. */
const SOON_S = 2 * LEASE_S

test('PolicyEvents writes an Event that kubectl describe finds', () => {
  const lab = new EventsLab().start()
  lab.set('web', ['spec.egress: found a text, expected a list', 'spec.x: unknown'])
  lab.pass(SOON_S)
  const [event] = lab.model.all('events')
  assert.ok(event !== undefined)
  const { firstTimestamp, lastTimestamp, metadata, ...rest } = event
  assert.deepEqual([metadata.name, metadata.namespace], ['namegate-fault-uid-web', 'shop'])
  assert.match(String(firstTimestamp), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  assert.equal(lastTimestamp, firstTimestamp)
  assert.deepEqual(rest, {
    apiVersion: 'v1',
    kind: 'Event',
    involvedObject: {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumNetworkPolicy',
      namespace: 'shop',
      name: 'web',
      uid: 'uid-web',
    },
    type: 'Warning',
    reason: 'PolicyFault',
    message:
      'spec.egress: found a text, expected a list; spec.x: unknown; the last good version stays in force on node-a',
    source: { component: 'namegate', host: 'node-a' },
    reportingComponent: 'namegate',
    reportingInstance: 'node-a',
    count: 1,
  })
})

test('PolicyEvents names what is in force, and the node', () => {
  const lab = new EventsLab().start()
  lab.set('new', ['bad'], { hasLastGood: false })
  lab.set('wide', ['bad'], { namespace: undefined })
  lab.set('long', ['x'.repeat(2_000)])
  lab.pass(SOON_S)
  const { 'fault-new': text, 'fault-long': long = '' } = lab.told()
  assert.equal(
    text,
    'Warning PolicyFault x1: bad; nothing of the policy is in force on node-a (node-a)',
  )
  assert.match(long, /^Warning PolicyFault x1: x+\.\.\.; the last good version stays in force/)
  const event = lab.model.find('events', 'namegate-fault-uid-long', 'shop')
  assert.equal(
    String(event?.['message']).length,
    1_000,
    'the newer API of Events takes no longer texts',
  )
  const wide = lab.model.find('events', 'namegate-fault-uid-wide', 'default')
  assert.ok(wide !== undefined, 'the Event of an object without a namespace is in `default`')
})

test('PolicyEvents follows a policy: changed, the same, mended, removed', () => {
  const lab = new EventsLab().start()
  const inForce = 'the last good version stays in force on node-a (node-a)'
  lab.set('web', ['one'])
  lab.pass(SOON_S)
  lab.set('web', ['two'])
  lab.pass(PAUSE_MS / 1000 + 1)
  assert.deepEqual(lab.told(), { 'fault-web': `Warning PolicyFault x2: two; ${inForce}` })
  lab.set('web', ['two'])
  lab.pass(REPEAT_MS / 1000 - 60)
  assert.deepEqual(
    lab.told(),
    { 'fault-web': `Warning PolicyFault x2: two; ${inForce}` },
    'too soon',
  )
  lab.pass(61)
  assert.deepEqual(lab.told(), { 'fault-web': `Warning PolicyFault x3: two; ${inForce}` })
  lab.model.remove('events', 'namegate-fault-uid-web', 'shop')
  lab.pass(REPEAT_MS / 1000)
  assert.deepEqual(
    lab.told(),
    { 'fault-web': `Warning PolicyFault x4: two; ${inForce}` },
    'the server forgets old Events',
  )
  lab.set('web', [])
  lab.pass(PAUSE_MS / 1000 + 1)
  const mended = 'Normal PolicyMended x1: the policy has no fault any more (node-a)'
  assert.equal(lab.told()['mended-web'], mended)
  lab.pass(2 * (REPEAT_MS / 1000))
  assert.equal(lab.nodes[0]?.events.counts.written, 5, 'mended is written once')
  lab.set('web', ['three'])
  lab.pass(5)
  assert.equal(lab.told()['fault-web'], `Warning PolicyFault x1: three; ${inForce}`)
  lab.remove('web')
  lab.pass(2 * (REPEAT_MS / 1000))
  assert.equal(lab.nodes[0]?.events.counts.written, 6, 'nothing is written about a removed policy')
})

test('PolicyEvents writes nothing about another policy of the same name', () => {
  const lab = new EventsLab().start()
  lab.set('web', ['one'])
  lab.pass(SOON_S)
  lab.set('web', [], { uid: 'uid-second' })
  lab.pass(SOON_S)
  assert.deepEqual(Object.keys(lab.told()), ['fault-web'])
  lab.set('web', ['one'], { uid: 'uid-third' })
  lab.pass(2)
  assert.deepEqual(Object.keys(lab.told()), ['fault-third', 'fault-web'])
})

test('PolicyEvents writes nothing about a policy that is held after its removal', () => {
  const lab = new EventsLab().start()
  lab.pass(SOON_S)
  lab.set('web', ['one'])
  lab.hold('web')
  lab.pass(SOON_S)
  assert.deepEqual(lab.told(), {})
})

test('PolicyEvents writes at most one Event in a second, and each policy in turn', () => {
  const lab = new EventsLab().start()
  for (let i = 0; i < 100; i++) lab.set(`p${i}`, ['bad'])
  lab.pass(LEASE_S)
  const before = lab.nodes[0]?.events.counts.written ?? 0
  assert.ok(before > 0)
  for (let i = 0; i < 20; i++) {
    lab.set('p0', [`bad ${i}`]) // a policy that always changes does not delay the others
    lab.pass(1)
  }
  assert.equal(lab.nodes[0]?.events.counts.written, before + 20)
  lab.pass(60)
  assert.equal(Object.keys(lab.told()).length, 100)
})

test('WriterLease lets one of many nodes write, and another after its end', () => {
  const lab = new EventsLab(['node-a', 'node-b', 'node-c']).start()
  lab.set('web', ['one'])
  lab.pass(SOON_S)
  const [first = ''] = lab.writers
  assert.equal(lab.model.all('events').length, 1)
  const standby = lab.nodes.filter(({ name }) => name !== first)
  for (const { events } of standby) {
    assert.deepEqual(events.status, { state: 'standby', writer: first, reason: '' })
  }
  lab.nodes.find(({ name }) => name === first)?.events.stop()
  lab.set('web', [])
  lab.pass(4 * LEASE_S)
  const [second = ''] = lab.writers
  assert.notEqual(second, first)
  assert.equal(
    lab.told()['mended-web'],
    `Normal PolicyMended x1: the policy has no fault any more (${second})`,
    'the Events of the writer before are known',
  )
  assert.equal(lab.mostWriters, 1)
  lab.stop()
})

test('WriterLease is lost before another node can take it, and returns to the same node', () => {
  const lab = new EventsLab(['node-a', 'node-b']).start()
  lab.pass(SOON_S)
  const [first = ''] = lab.writers
  const writer = lab.nodes.find(({ name }) => name === first)
  assert.ok(writer !== undefined)
  writer.api.isAway = true
  lab.pass(LEASE_S * 0.7)
  assert.deepEqual(lab.writers, [])
  assert.match(writer.events.status.reason, /lost/)
  lab.pass(2 * LEASE_S)
  assert.equal(lab.writers.length, 1)
  assert.notEqual(lab.writers[0], first)
  writer.api.isAway = false
  lab.pass(2 * LEASE_S)
  assert.equal(writer.events.status.state, 'standby')
  assert.equal(lab.mostWriters, 1)
})

test('WriterLease is not taken while its node may still write, whenever that node loses the server', () => {
  const shortest = new RandomPool({ fill: (target) => target.fill(0) })
  for (let second = 0; second < LEASE_S; second++) {
    const lab = new EventsLab(['node-a', 'node-b'], shortest).start()
    lab.pass(SOON_S + second)
    const writer = lab.nodes.find(({ name }) => name === lab.writers[0])
    assert.ok(writer !== undefined)
    writer.api.isAway = true
    lab.pass(2 * LEASE_S)
    assert.equal(lab.mostWriters, 1, `lost after ${second} s`)
    assert.equal(lab.writers.length, 1, 'the other node has taken it')
    lab.stop()
  }
})

test('WriterLease continues at once after a restart of its node', () => {
  const lab = new EventsLab(['node-a']).start()
  lab.set('web', ['one'])
  lab.pass(SOON_S)
  lab.nodes[0]?.events.stop()
  const again = lab.add('node-a')
  again.events.start()
  lab.pass(LEASE_S / 2)
  assert.equal(again.events.status.state, 'writing')
  assert.deepEqual(Object.keys(lab.told()), ['fault-web'], 'the Event exists already')
  assert.equal(again.events.counts.written, 1)
})

test('WriterLease is free after release', async () => {
  const lab = new EventsLab(['node-a', 'node-b']).start()
  lab.pass(SOON_S)
  const [first = ''] = lab.writers
  const released = lab.nodes.find(({ name }) => name === first)?.events.release()
  lab.clock.advance(10)
  await released
  lab.pass(LEASE_S)
  assert.equal(lab.writers.length, 1)
  assert.notEqual(lab.writers[0], first)
})

test('release ends without an answer', async () => {
  const lab = new EventsLab(['node-a']).start()
  lab.pass(SOON_S)
  lab.nodes[0]?.api.faults.push({ path: 'PATCH', fault: { kind: 'silence' } })
  const released = lab.nodes[0]?.events.release()
  lab.clock.advance(1_000)
  await released
})

for (const [right, rule] of [
  [
    'get leases',
    'verb get for resource leases of API group "coordination.k8s.io" in namespace namegate',
  ],
  [
    'create leases',
    'verb create for resource leases of API group "coordination.k8s.io" in namespace namegate',
  ],
  [
    'patch leases',
    'verb patch for resource leases of API group "coordination.k8s.io" in namespace namegate',
  ],
  ['create events', 'verb create for resource events of API group "" in a ClusterRole'],
  ['patch events', 'verb patch for resource events of API group "" in a ClusterRole'],
] as const) {
  test(`PolicyEvents names the missing right: ${right}`, () => {
    const lab = new EventsLab()
    lab.model.denied.add(right)
    lab.set('web', ['one'])
    lab.start().pass(SOON_S)
    lab.set('web', ['two'])
    lab.pass(SOON_S)
    const [node] = lab.nodes
    const reason = `a right is missing: add ${rule}`
    assert.equal(node?.events.status.state, 'forbidden')
    assert.equal(node?.events.status.reason, reason)
    assert.ok(node.api.log.length < 40, 'it asks slowly')
    lab.model.denied.clear()
    lab.pass(SOON_S)
    assert.equal(node.events.status.state, 'writing')
    assert.match(lab.told()['fault-web'] ?? '', /two/)
  })
}

const GOING =
  'events is forbidden: unable to create new content in namespace shop because it is being terminated'

const REFUSALS: readonly (readonly [fault: Fault, isAgain: boolean, reason: string])[] = [
  [{ kind: 'lost' }, true, 'the connection broke'],
  [{ kind: 'silence' }, true, 'no answer came'],
  [{ kind: 'answer', code: 500 }, true, 'a fault of the server'],
  [{ kind: 'answer', code: 401 }, true, 'the token is read again'],
  [{ kind: 'answer', code: 429, retryAfterMs: 5_000 }, true, 'the server is busy'],
  [{ kind: 'answer', code: 404 }, false, 'the namespace is gone'],
  [{ kind: 'answer', code: 422 }, false, 'the server does not like this Event'],
  [{ kind: 'answer', code: 403, body: status.make(403, 'Forbidden', GOING) }, false, 'going'],
]

for (const [fault, isAgain, reason] of REFUSALS) {
  test(`EventWriter writes ${isAgain ? 'again' : 'the next Event'}: ${reason}`, () => {
    const lab = new EventsLab()
    const [node] = lab.nodes
    assert.ok(node !== undefined)
    node.api.faults.push({ path: 'shop/events', fault })
    lab.set('first', ['bad'])
    lab.set('second', ['bad'])
    lab.start().pass(SOON_S)
    const written = isAgain ? ['fault-first', 'fault-second'] : ['fault-second']
    assert.deepEqual(Object.keys(lab.told()), written)
    assert.deepEqual(node.events.status, { state: 'writing', writer: 'node-a', reason: '' })
    const { failed, refused } = node.events.counts
    assert.deepEqual([failed, refused], isAgain ? [1, 0] : [0, 1])
  })
}
