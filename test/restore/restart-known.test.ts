// A start with the records of the daemon before. Equal label sets keep their numbers, known entries are restored, and the kernel is not
// written where it has the same already.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointRecord } from '../../src/enforcement/endpoint-control.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { knownEntries } from '../support/known-entries.ts'
import { MemoryState } from '../support/models/memory-state.ts'
import {
  addressNumber,
  mkEndpoint,
  mkPolicies,
  Node,
  type NodeOptions,
} from '../support/nodes/node.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'

const RECORDS = [
  mkEndpoint('a', ['10.200.0.1', 'fd00::1'], ['k8s:app=a']),
  mkEndpoint('b', ['10.200.0.2']),
]
const WILD = 'egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'
const ONE = 'egress: [ { toFQDNs: [ { matchName: one.x } ] } ]'
const CIDR =
  'egress: [ { toCIDR: [ 192.0.2.0/24 ], toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ] } ]'

interface Before {
  readonly clock?: FakeClock
  readonly records?: readonly EndpointRecord[]
  readonly options?: Partial<NodeOptions>
}

function start(specs: readonly string[], disk: MemoryState, before: Before & { old?: Node } = {}) {
  const { clock, old, records = RECORDS, options } = before
  const node = new Node({
    ...options,
    kept: { saved: disk.read(), sink: disk, bootAtZero: 0 },
    ...(clock && { clock }),
    recorder: old?.recorder,
  })
  node.policies.setPolicies(mkPolicies(...specs), node.endpoints.registry)
  node.setEndpoints(records)
  return node
}

test('A node that starts again knows the same entries under the same numbers, and writes nothing', () => {
  const disk = new MemoryState()
  const clock = new FakeClock()
  const old = start([WILD, ONE], disk, { clock })
  old.learn(old.endpoint('a').id, 'one.x', ['192.0.2.1', '2001:db8::1'])
  old.learn(old.endpoint('b').id, 'two.x', ['192.0.2.1', '192.0.2.2'])
  old.learn(old.endpoint('a').id, 'unselected.y', ['192.0.2.3'])
  old.takeOver()
  clock.advance(1000)
  const before = knownEntries(old)
  assert.equal(before.length, 5)
  const next = start([WILD, ONE], disk, { clock, old })
  let writes = 0
  next.recorder.onWrite = () => writes++
  next.takeOver('grace')
  assert.deepEqual(knownEntries(next), before)
  assert.equal(writes, 0, 'the kernel has the same already')
  next.takeOver('done')
  assert.equal(writes, 0)
  assert.deepEqual(next.differences(), [])
})

test('A selector that was removed while no daemon ran leaves its addresses reachable all the time (CFP-28427, restart)', () => {
  const disk = new MemoryState()
  const clock = new FakeClock()
  const old = start(['egress: [ { toFQDNs: [ { matchPattern: "*" } ] } ]', ONE], disk, { clock })
  old.learn(old.endpoint('a').id, 'one.x', ['192.0.2.1'])
  clock.advance(1000)
  const seen = new Set([old.verdict('a', '192.0.2.1')])
  const next = start(['egress: [ { toFQDNs: [ { matchPattern: "*" } ] } ]'], disk, { clock, old })
  next.recorder.onWrite = () => seen.add(next.verdict('a', '192.0.2.1'))
  next.takeOver()
  assert.deepEqual([...seen], ['allow'])
  assert.deepEqual(next.labelsOf('192.0.2.1'), ['fqdn:*', 'reserved:world', 'reserved:world-ipv4'])
  assert.deepEqual(next.differences(), [])
})

test('An answer to one name of an address restores everything known about the address', () => {
  const disk = new MemoryState()
  const clock = new FakeClock()
  const old = start([WILD, ONE], disk, { clock })
  const number = (node: Node): number => node.identityOf('192.0.2.1')
  old.learn(old.endpoint('a').id, 'one.x', ['192.0.2.1'])
  old.learn(old.endpoint('a').id, 'two.x', ['192.0.2.1'])
  clock.advance(1000)
  const before = number(old)
  const next = start([WILD, ONE], disk, { clock, old })
  assert.equal(next.rowOf('192.0.2.1'), 0, 'not restored yet')
  next.learn(next.endpoint('a').id, 'two.x', ['192.0.2.1'])
  assert.equal(number(next), before, 'with the label of the other name')
  assert.equal(knownEntries(next).length, 2)
})

test('An address that was learned too late for the journal keeps its number and its labels for the grace', () => {
  const disk = new MemoryState()
  const clock = new FakeClock()
  const old = start([WILD, CIDR], disk, { clock })
  clock.advance(1000)
  old.learn(old.endpoint('a').id, 'late.x', ['192.0.2.1', '198.51.100.1'])
  const numbers = ['192.0.2.1', '198.51.100.1'].map((text) => old.identityOf(text))
  const seen = new Set([old.verdict('a', '198.51.100.1')])
  assert.deepEqual([...seen], ['allow'], 'numbers are written at once, entries a little later')
  const next = start([WILD, CIDR], disk, { clock, old })
  next.recorder.onWrite = () => seen.add(next.verdict('a', '198.51.100.1'))
  next.takeOver('grace')
  assert.deepEqual(knownEntries(next), [])
  assert.equal(next.restart.counters.claimed, 2)
  assert.deepEqual(
    ['192.0.2.1', '198.51.100.1'].map((text) => next.identityOf(text)),
    numbers,
  )
  assert.deepEqual([...seen], ['allow'])
  next.learn(next.endpoint('a').id, 'late.x', ['198.51.100.1'])
  next.restart.leave()
  while (next.restart.step(Infinity)) continue
  assert.equal(next.verdict('a', '198.51.100.1'), 'allow', 'asked again in time')
  assert.equal(next.rowOf('192.0.2.1'), 0, 'not asked again')
  assert.deepEqual(next.differences(), [])
})

test('An answer to one name of an address that only the kernel knows keeps the labels of its other names', () => {
  const disk = new MemoryState()
  const clock = new FakeClock()
  const old = start([WILD, ONE], disk, { clock })
  clock.advance(1000)
  old.learn(old.endpoint('a').id, 'one.x', ['192.0.2.1'])
  old.learn(old.endpoint('b').id, 'two.x', ['192.0.2.1'])
  const before = old.identityOf('192.0.2.1')
  const next = start([WILD, ONE], disk, { clock, old })
  next.learn(next.endpoint('b').id, 'two.x', ['192.0.2.1'])
  assert.equal(next.identityOf('192.0.2.1'), before)
  next.takeOver('grace')
  assert.equal(next.identityOf('192.0.2.1'), before)
  assert.equal(next.restart.counters.claimed, 1, 'once')
  next.takeOver('done')
  assert.deepEqual(
    next.labelsOf('192.0.2.1').filter((label) => label.startsWith('fqdn:')),
    ['fqdn:*.x'],
  )
  assert.deepEqual(next.differences(), [])
})

test('Without records, addresses keep their entries for the grace, and no number is given twice', () => {
  const old = start([WILD], new MemoryState())
  old.learn(old.endpoint('a').id, 'one.x', ['198.51.100.1'])
  const number = old.identityOf('198.51.100.1')
  const seen = new Set([old.verdict('a', '198.51.100.1')])
  const next = start([WILD], new MemoryState(), { old })
  next.recorder.onWrite = () => seen.add(next.verdict('a', '198.51.100.1'))
  next.takeOver('grace')
  assert.deepEqual([...seen], ['allow'])
  assert.equal(next.restart.counters.kept, 1)
  next.learn(next.endpoint('a').id, 'two.x', ['198.51.100.2'])
  assert.notEqual(next.identityOf('198.51.100.2'), number)
  next.takeOver('done')
  assert.deepEqual([...seen], ['allow', 'deny'], 'denied without a new question')
  assert.equal(next.verdict('a', '198.51.100.2'), 'allow')
  assert.deepEqual(next.differences(), [])
})

test('Only addresses of the world stay for the grace, with labels of names only, in scopes of existing endpoints', () => {
  const specs = [WILD, CIDR]
  const options = { learning: 'endpoint' } as const
  const old = start(specs, new MemoryState(), { options })
  old.learn(old.endpoint('a').id, 'one.x', ['198.51.100.1'])
  old.learn(old.endpoint('b').id, 'one.x', ['198.51.100.2'])
  const [a, b] = ['a', 'b'].map((name) => old.endpoint(name).id)
  const kept = ['192.0.2.0/24', `198.51.100.1/32@${a}`, `198.51.100.2/32@${b}`]
  for (const key of kept) assert.ok(old.recorder.prefixes.has(key), key)
  const next = start([WILD], new MemoryState(), { old, options, records: RECORDS.slice(0, 1) })
  next.takeOver('grace')
  const left = kept.filter((key) => next.recorder.prefixes.has(key))
  assert.deepEqual(left, kept.slice(1, 2))
})

test('An address that only the kernel knows gets back the labels of names, and nothing else', () => {
  const [disk, clock] = [new MemoryState(), new FakeClock()]
  const old = start([WILD, CIDR], disk, { clock })
  clock.advance(1000)
  old.learn(old.endpoint('a').id, 'one.x', ['192.0.2.1'])
  assert.ok(old.labelsOf('192.0.2.1').some((label) => label.startsWith('cidr:')))
  const next = start([WILD], disk, { clock, old })
  next.takeOver('grace')
  assert.deepEqual(
    next.labelsOf('192.0.2.1').filter((label) => !label.startsWith('reserved:')),
    ['fqdn:*.x'],
  )
})

test('A node that is killed during a restart loses nothing', () => {
  const disk = new MemoryState()
  const clock = new FakeClock()
  const addresses = Array.from({ length: 500 }, (_, i) => addressNumber(4, i))
  const old = start([WILD], disk, { clock })
  for (const [i, address] of addresses.entries()) {
    old.learn(old.endpoint('a').id, `n${i}.x`, [address], 3000)
  }
  clock.advance(1000)
  const before = knownEntries(old)
  disk.wantsImage = true
  const killed = start([WILD], disk, { clock, old })
  killed.restart.step(0)
  killed.learn(killed.endpoint('a').id, 'new.x', ['198.51.100.1'], 3000)
  for (let i = 0; i < 50; i++) clock.advance(300)
  assert.ok(knownEntries(killed).length < before.length, 'killed before the end of the restart')
  const next = start([WILD], disk, { clock, old: killed })
  next.takeOver('grace')
  const others = knownEntries(next).filter((line) => !line.includes(' new.x '))
  assert.deepEqual(others, before)
  assert.equal(knownEntries(next).length, before.length + 1)
})

test('What policy denies now is denied from the start, whatever was learned', () => {
  const disk = new MemoryState()
  const clock = new FakeClock()
  const old = start([WILD], disk, { clock })
  old.learn(old.endpoint('a').id, 'one.x', ['192.0.2.1'])
  old.learn(old.endpoint('a').id, 'late.x', ['198.51.100.1'])
  clock.advance(1000)
  const next = start([WILD, 'egressDeny: [ { toCIDR: [ 192.0.2.0/24 ] } ]'], disk, { clock, old })
  next.takeOver('grace')
  assert.deepEqual(
    ['192.0.2.1', '198.51.100.1'].map((to) => next.verdict('a', to)),
    ['deny', 'allow'],
  )
})

test('Entries of removed endpoints are not restored, and the time without a daemon counts', () => {
  const disk = new MemoryState()
  const clock = new FakeClock()
  const old = start([WILD], disk, { clock })
  old.learn(old.endpoint('a').id, 'short.x', ['192.0.2.1'], 30)
  old.learn(old.endpoint('a').id, 'long.x', ['192.0.2.2'], 3000)
  old.learn(old.endpoint('b').id, 'long.x', ['192.0.2.3'], 3000)
  clock.advance(1000)
  clock.advance(300_000)
  const next = start([WILD], disk, { clock, old, records: RECORDS.slice(0, 1) })
  next.takeOver('grace')
  assert.deepEqual(
    knownEntries(next).map((line) => line.split(' ').slice(0, 3).join(' ')),
    ['a long.x 192.0.2.2/32', 'a short.x 192.0.2.1/32'],
  )
  while (!next.core.expiry.step(Infinity)) continue
  next.core.committer.commit()
  assert.deepEqual(
    knownEntries(next).map((line) => line.split(' ').slice(0, 3).join(' ')),
    ['a long.x 192.0.2.2/32'],
    'TTL and grace of the other are over',
  )
})

test('A start restores what was recorded, after any events and whenever the node ends', () => {
  const random = new Random(29)
  for (let round = 0; round < runsOf(40); round++) {
    const disk = new MemoryState()
    const clock = new FakeClock()
    const old = start([WILD, ONE], disk, { clock })
    for (let step = 0; step < 120; step++) {
      const choice = random.below(10)
      if (choice < 6) {
        const name = ['one.x', 'two.x', 'three.x', 'four.y'][random.below(4)] ?? ''
        const endpoint = old.endpoint(random.below(2) === 0 ? 'a' : 'b').id
        old.learn(endpoint, name, [addressNumber(4, random.below(6))], 1 + random.below(40))
      } else if (choice < 8) {
        clock.advance(random.below(20_000))
        while (!old.core.expiry.step(Infinity)) continue
        old.core.committer.commit()
      } else if (choice === 8) {
        disk.wantsImage = true
      } else {
        clock.advance(260)
      }
    }
    clock.advance(1000)
    const next = start([WILD, ONE], disk, { clock, old })
    const before = knownEntries(old)
    let writes = 0
    next.recorder.onWrite = () => writes++
    next.takeOver()
    assert.deepEqual(knownEntries(next), before)
    assert.equal(writes, 0)
    assert.deepEqual(next.differences(), [])
  }
})
