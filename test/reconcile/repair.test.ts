// Repair undoes changes of other programs to the kernel's maps within two intervals: missing and added entries. It writes nothing else.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Repair } from '../../src/reconcile/repair.ts'
import type { RepairedEntry } from '../../src/datapath/repair.ts'
import { identity, ruleId } from '../../src/core/ids.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

const EVERY_MS = 60_000
const WILD = 'egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'
const DENY = 'egressDeny: [ { toCIDR: [ 203.0.113.0/24 ] } ]'

interface Watched {
  readonly node: Node
  readonly repair: Repair
  readonly told: string[]
}

function watched(): Watched {
  const node = new Node()
  node.policies.setPolicies(mkPolicies(WILD, DENY), node.endpoints.registry)
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1'])])
  node.learn(node.endpoint('a').id, 'one.x', ['192.0.2.1', '2001:db8::1'])
  node.takeOver()
  return watch(node)
}

function watch(node: Node): Watched {
  const told: string[] = []
  const tell = ({ map, key, want, have }: RepairedEntry, count: number): void => {
    const what = want === null ? 'added' : have === null ? 'deleted' : 'changed'
    told.push(`${count} ${map} ${key} ${what}`)
  }
  const repair = new Repair({
    core: node.core,
    endpoints: () => [],
    inheritedPolicies: () => node.restart.inheritedPolicies,
    everyMs: EVERY_MS,
    onRepaired: tell,
    onFault: (reason) => assert.fail(reason),
  })
  repair.start()
  node.recorder.takeWrites()
  return { node, repair, told }
}

/** All entries in force, as text. */
function held({ recorder }: Node): string {
  const prefixes = [...recorder.prefixes].map(([key, place]) => `${key} ${place.identity}`)
  const policies = [...recorder.policies].map(([key, entry]) => `${key} ${entry.verdict}`)
  return [...prefixes, ...policies].toSorted().join('\n')
}

function looks({ node }: Watched, count = 1): void {
  // The first step is for the timer, the others are for the work that continues in the next turns.
  for (let i = 0; i < count; i++) for (const ms of [EVERY_MS, 1, 1, 1]) node.clock.advance(ms)
}

test('Repair writes nothing if no other program changed an entry', () => {
  const all = watched()
  looks(all, 3)
  assert.equal(all.repair.counters.walks, 3)
  assert.equal(all.node.recorder.takeWrites().commits, 0)
  assert.deepEqual(all.told, [])
})

const CHANGES: readonly (readonly [what: string, change: (node: Node) => void, told: RegExp])[] = [
  [
    'an address that was deleted',
    ({ recorder }) => recorder.prefixes.delete('192.0.2.1/32'),
    /^1 ng_ipcache 192\.0\.2\.1\/32 deleted$/,
  ],
  [
    'an address that got another identity',
    ({ recorder }) => {
      const place = recorder.prefixes.get('2001:db8::1/128') ?? assert.fail('it is there')
      recorder.prefixes.set('2001:db8::1/128', { ...place, identity: identity(77) })
    },
    /^1 ng_ipcache 2001:db8::1\/128 changed$/,
  ],
  [
    'an address that was added',
    ({ recorder }) => {
      const place = recorder.prefixes.get('192.0.2.1/32') ?? assert.fail('it is there')
      const octets = Uint8Array.of(192, 0, 2, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
      recorder.prefixes.set('192.0.2.9/32', { ...place, prefix: { ...place.prefix, octets } })
    },
    /^1 ng_ipcache 192\.0\.2\.9\/32 added$/,
  ],
  [
    'all entries of policy, deleted',
    ({ recorder }) => recorder.policies.clear(),
    /^\d+ ng_policy .* deleted$/,
  ],
  [
    'a deny that was made an allow',
    ({ recorder }) => {
      for (const [key, entry] of recorder.policies) {
        if (entry.verdict === 'deny') recorder.policies.set(key, { ...entry, verdict: 'allow' })
      }
    },
    /^\d+ ng_policy .* changed$/,
  ],
  [
    'an entry of policy that was added',
    ({ recorder }) => {
      const [entry] = recorder.policies.values()
      assert.ok(entry !== undefined)
      const added = { ...entry, identity: identity(9), port: 22, portBits: 16, protocol: 6 }
      recorder.policies.set(`${entry.endpoint} 9 6 22/16`, { ...added, rule: ruleId(0) })
    },
    /^1 ng_policy .* added$/,
  ],
]

for (const [what, change, told] of CHANGES) {
  test(`Repair undoes within an interval: ${what}`, () => {
    const all = watched()
    const before = held(all.node)
    change(all.node)
    assert.notEqual(held(all.node), before)
    looks(all)
    assert.equal(held(all.node), before)
    assert.equal(all.told.length, 1)
    assert.match(all.told[0] ?? '', told)
    assert.ok(all.repair.counters.repaired > 0)
    all.node.recorder.takeWrites()
    looks(all)
    assert.equal(all.node.recorder.takeWrites().commits, 0, 'nothing is left to do')
  })
}

test('Repair removes added entries, and keeps entries of an earlier daemon that wait for their removal', () => {
  const before = watched()
  before.repair.stop()
  const { recorder } = before.node
  const node = new Node({ recorder })
  const all = watch(node)
  const left = held(node)
  assert.notEqual(left, '')
  looks(all, 2)
  assert.deepEqual([held(node), all.told], [left, []], 'what was left')
  const place = recorder.prefixes.get('192.0.2.1/32') ?? assert.fail('it is there')
  const [entry] = recorder.policies.values()
  assert.ok(entry !== undefined)
  const octets = Uint8Array.of(192, 0, 2, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
  recorder.prefixes.set('192.0.2.9/32', { ...place, prefix: { ...place.prefix, octets } })
  recorder.policies.set(`${entry.endpoint} 9 6 22/16`, {
    ...entry,
    identity: identity(9),
    port: 22,
    portBits: 16,
    protocol: 6,
  })
  looks(all)
  assert.equal(held(node), left, 'what was added')
  assert.equal(all.told.length, 1)
  recorder.prefixes.set('192.0.2.1/32', { ...place, identity: identity(9) })
  looks(all)
  assert.equal(
    recorder.prefixes.has('192.0.2.1/32'),
    false,
    'an entry of an earlier daemon that was changed',
  )
})

test('Repair does nothing after stop', () => {
  const all = watched()
  all.node.recorder.prefixes.delete('192.0.2.1/32')
  all.repair.stop()
  looks(all, 2)
  assert.equal(all.repair.counters.walks, 0)
})
