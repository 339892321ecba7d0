// A start with as many names as a bound allows: the connections of the present decide which entries are evicted, although
// namegate has not read them since the start.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NONE, PendingAddresses } from '../../src/restore/pending-entries.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { MemoryState } from '../support/models/memory-state.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../support/nodes/node.ts'
import type { Recorder } from '../support/models/recorder.ts'

const NAMES = 8
const BOUNDS = {
  'names-per-wildcard': { 'names-per-wildcard': NAMES },
  'pairs-per-endpoint': { 'pairs-per-endpoint': NAMES },
  pairs: {},
} as const
const WILD = 'egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'

function start(
  disk: MemoryState,
  clock: FakeClock,
  bounds: object,
  recorder?: Recorder,
  pairs = Object.keys(bounds).length === 0 ? NAMES : 64,
): Node {
  const kept = { saved: disk.read(), sink: disk, bootAtZero: 0 }
  const node = new Node({ clock, kept, bounds, pairs, recorder })
  node.policies.setPolicies(mkPolicies(WILD), node.endpoints.registry)
  node.setEndpoints([mkEndpoint('pod', ['10.0.0.1'])])
  return node
}

/** The slices of the restart before the answers with new names. The last row: after the whole restart. */
const SLICES = [0, 1, 2, Infinity]

for (const [bound, bounds] of Object.entries(BOUNDS)) {
  for (const slices of SLICES) {
    test(`A node that starts again at ${bound} evicts no name under an open connection, after ${slices} slices`, () => {
      const [disk, clock] = [new MemoryState(), new FakeClock()]
      const old = start(disk, clock, bounds)
      const pod = old.endpoint('pod').id
      for (let i = 0; i < NAMES; i++) old.learn(pod, `n${i}.x`, [`192.0.2.${i}`])
      old.takeOver()
      clock.advance(1000)
      const node = start(disk, clock, bounds, old.recorder)
      const connected = [0, 3, 7].map((i) => `192.0.2.${i}/32`)
      for (const address of connected) {
        node.recorder.connections.push({ endpoint: pod, peer: prefixOf(address) })
      }
      if (slices === Infinity) node.takeOver()
      else for (let i = 0; i < slices; i++) node.restart.step(0)
      for (let i = 0; i < 5; i++) node.learn(pod, `new${i}.x`, [`192.0.2.${100 + i}`])
      const newest = node.labelsOf('192.0.2.104/32').length
      node.takeOver()
      const lost = connected.filter((address) => node.labelsOf(address).length === 0)
      assert.deepEqual(lost, [])
      assert.ok(newest > 0)
    })
  }
}

/** Returns an address whose answer brings no saved entry back. */
function addressWithoutSaved(disk: MemoryState): string {
  const saved = disk.read()
  assert.ok(saved)
  const index = new PendingAddresses(saved.pairs)
  const isFree = (address: string): boolean =>
    index.first(index.chain(4, prefixOf(address).octets, 0)) === NONE
  const found = Array.from({ length: 100 }, (_, i) => `198.51.100.${i}`).find((each) =>
    isFree(`${each}/32`),
  )
  assert.ok(found)
  return found
}

const MANY = 40
const SHARED = '192.0.2.200'

test('A node that starts again evicts no name under an open connection if one answer brings back enough names to reach a bound', () => {
  const [disk, clock] = [new MemoryState(), new FakeClock()]
  // An eviction is near only when the wildcard has all its names.
  const bounds = { 'names-per-wildcard': MANY, 'wildcard-names': 10_000 }
  const old = start(disk, clock, bounds, undefined, 256)
  const pod = old.endpoint('pod').id
  const addressOf = (i: number): string => (i < MANY / 2 ? `192.0.2.${i}` : SHARED)
  for (let i = 0; i < MANY; i++) old.learn(pod, `n${i}.x`, [addressOf(i)])
  old.takeOver()
  clock.advance(1000)
  const node = start(disk, clock, bounds, old.recorder, 256)
  const connected = [0, 1, 2].map((i) => `192.0.2.${i}/32`)
  for (const address of connected) {
    node.recorder.connections.push({ endpoint: pod, peer: prefixOf(address) })
  }
  clock.advance(1000)
  const address = addressWithoutSaved(disk)
  for (let i = 0; i < MANY - 10; i++) node.learn(pod, `new${i}.x`, [address])
  assert.equal(node.core.names.eviction.isNear, false)
  node.learn(pod, 'new.x', [SHARED])
  node.takeOver()
  for (let i = 0; i < MANY / 2; i++) node.learn(pod, `late${i}.x`, [`192.0.2.${150 + i}`])
  const lost = connected.filter((address) => node.labelsOf(address).length === 0)
  assert.deepEqual(lost, [])
})

test('A look of a restart that brings back more than a bound allows evicts names without a connection', () => {
  const [disk, clock] = [new MemoryState(), new FakeClock()]
  const [most, open, fresh] = [300, 250, 100]
  const bounds = { 'names-per-wildcard': most, 'wildcard-names': 10_000 }
  const old = start(disk, clock, bounds, undefined, 2048)
  const pod = old.endpoint('pod').id
  const addressOf = (i: number): string => `192.0.${2 + (i >> 8)}.${i & 255}`
  for (let i = 0; i < most; i++) old.learn(pod, `n${i}.x`, [addressOf(i)])
  old.takeOver()
  clock.advance(1000)
  const node = start(disk, clock, bounds, old.recorder, 2048)
  const connected = Array.from({ length: open }, (_, i) => `${addressOf(i)}/32`)
  for (const address of connected) {
    node.recorder.connections.push({ endpoint: pod, peer: prefixOf(address) })
  }
  clock.advance(1000)
  const address = addressWithoutSaved(disk)
  for (let i = 0; i < fresh; i++) node.learn(pod, `new${i}.x`, [address])
  node.takeOver()
  const lost = connected.filter((each) => node.labelsOf(each).length === 0)
  assert.deepEqual(lost, [])
})
