// Labels of addresses that only the kernel knew at a start (owner `restored`). They are those of selectors in force, after any kills,
// starts and changes of policy, and they return with their selector during the grace.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeClock } from '../support/fake-clock.ts'
import { MemoryState } from '../support/models/memory-state.ts'
import { addressNumber, mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'
import { Random } from '../support/models/random.ts'

const RECORDS = [mkEndpoint('a', ['10.200.0.1'])]
const WILD = 'egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'
const LATE = 'egress: [ { toFQDNs: [ { matchPattern: "late.*" } ] } ]'
const OTHER = 'egress: [ { toFQDNs: [ { matchName: other.y } ] } ]'
const ADDRESS = '198.51.100.1'

interface Site {
  readonly disk: MemoryState
  readonly clock: FakeClock
}

/** Starts over what the killed `old` left on the disk and in the datapath. */
function start({ disk, clock }: Site, specs: readonly string[], old?: Node): Node {
  const kept = { saved: disk.read(), sink: disk, bootAtZero: 0 }
  const node = new Node({ kept, clock, recorder: old?.recorder })
  node.policies.setPolicies(mkPolicies(...specs), node.endpoints.registry)
  node.setEndpoints(RECORDS)
  return node
}

/** One address that a daemon with these policies learned too late for its journal. */
function learnedLate(specs: readonly string[]): { readonly site: Site; readonly old: Node } {
  const site = { disk: new MemoryState(), clock: new FakeClock() }
  const old = start(site, specs)
  site.clock.advance(1000)
  old.learn(old.endpoint('a').id, 'late.x', [ADDRESS])
  return { site, old }
}

function selectorsOn(node: Node, address: string): readonly string[] {
  return node.labelsOf(address).filter((label) => label.startsWith('fqdn:'))
}

test('Restart leaves an address no label of a selector that was removed while no daemon ran', () => {
  const { site, old } = learnedLate([WILD, LATE])
  assert.deepEqual(selectorsOn(old, ADDRESS), ['fqdn:*.x', 'fqdn:late.*'])
  const next = start(site, [WILD], old)
  next.takeOver('grace')
  assert.deepEqual(selectorsOn(next, ADDRESS), ['fqdn:*.x'])
  assert.equal(next.verdict('a', ADDRESS), 'allow')
  assert.deepEqual(next.differences(), [])
})

test('Restart removes an address whose selectors are all removed', () => {
  const { site, old } = learnedLate([WILD])
  const next = start(site, [OTHER], old)
  next.takeOver('grace')
  assert.deepEqual(selectorsOn(next, ADDRESS), [])
  assert.equal(next.recorder.prefixes.has(`${ADDRESS}/32`), false)
  assert.deepEqual(next.differences(), [])
})

test('A selector that is removed in the grace removes its label, and its return restores it', () => {
  const { site, old } = learnedLate([WILD, LATE])
  const next = start(site, [WILD, LATE], old)
  next.takeOver('grace')
  const seen: string[] = []
  for (const specs of [[WILD], [OTHER], [OTHER, LATE], [WILD, LATE]]) {
    next.setPolicies(mkPolicies(...specs))
    assert.deepEqual(next.differences(), [])
    seen.push(`${selectorsOn(next, ADDRESS).join(' ')} ${next.verdict('a', ADDRESS)}`)
  }
  assert.deepEqual(seen, [
    'fqdn:*.x allow',
    ' deny',
    'fqdn:late.* allow',
    'fqdn:*.x fqdn:late.* allow',
  ])
  next.takeOver('done')
  assert.equal(next.rowOf(ADDRESS), 0)
  assert.deepEqual(next.differences(), [])
})

test('No address has a label of a selector that is not in force, after any kills and changes', () => {
  const random = new Random(12)
  const policies = [WILD, LATE, OTHER, 'egress: [ { toFQDNs: [ { matchName: one.x } ] } ]']
  for (let round = 0; round < 60; round++) {
    const site = { disk: new MemoryState(), clock: new FakeClock() }
    let specs = policies.filter(() => random.below(2) === 0)
    let node = start(site, specs)
    const done: string[] = []
    for (let step = 0; step < 25; step++) {
      const choice = random.below(8)
      done.push(`${choice}`)
      if (choice < 3) {
        const name = ['one.x', 'late.x', 'late.y', 'other.y'][random.below(4)] ?? ''
        node.learn(node.endpoint('a').id, name, [addressNumber(4, random.below(8))])
      } else if (choice === 3) {
        site.clock.advance(1000)
      } else if (choice < 6) {
        specs = policies.filter(() => random.below(2) === 0)
        if (choice === 4) node = start(site, specs, node)
        else node.setPolicies(mkPolicies(...specs))
        node.takeOver('grace')
      } else {
        node = start(site, specs, node)
        if (random.below(2) === 0) node.takeOver('grace')
        else node.restart.step(0)
      }
      node.settle()
      const inForce = new Set([...node.core.selectors].map(({ kind, text }) => `${kind}:${text}`))
      for (let i = 0; i < 8; i++) {
        const stray = selectorsOn(node, addressNumber(4, i)).filter((each) => !inForce.has(each))
        assert.deepEqual(stray, [], `round ${round}, after ${done.join(' ')}`)
      }
    }
    node.takeOver('done')
    assert.deepEqual(node.differences(), [])
  }
})
