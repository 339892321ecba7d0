import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidInputError, UnavailableError } from '../../src/core/errors.ts'
import { intercepts } from '../../src/intercept/plan.ts'
import { maybePlan, mkPlan } from '../support/labs/intercept-plans.ts'

test('makePlan is empty for explicit listeners', () => {
  assert.equal(maybePlan({ listeners: '{ address: 127.0.0.1, port: 5300 }' }), undefined)
})

test('makePlan has the address of each tproxy listener and the interfaces whose DNS it intercepts', () => {
  const plan = mkPlan({
    listeners:
      "{ port: 10053, mode: tproxy, interfaces: [eth1, 'lxc*'] }, { port: 10054, mode: tproxy }",
    more: 'intercept: { mark: 0x77, table: 99 }',
  })
  const every = (port: number) => ({
    4: { address: undefined, port },
    6: { address: undefined, port },
  })
  assert.deepEqual(plan, {
    tproxy: [
      { targets: every(10053), names: ['eth1'], beginnings: ['lxc'], ofEndpoints: false },
      { targets: every(10054), names: [], beginnings: [], ofEndpoints: true },
    ],
    redirect: undefined,
    mark: 0x77,
    table: 99,
    families: [4, 6],
    notes: [],
  })
})

test('intercepts compares the interface of an endpoint with the names and beginnings of all listeners', () => {
  const named = "{ port: 10053, mode: tproxy, interfaces: [eth1, 'lxc*'] }"
  const rows: readonly (readonly [
    listeners: string,
    name: string,
    expected: boolean,
    reason: string,
  ])[] = [
    [named, 'eth1', true, 'a name'],
    [named, 'lxc42', true, 'a beginning'],
    [named, 'eth10', false, 'a name is whole'],
    [named, 'veth1', false, 'another interface'],
    ['{ port: 10054, mode: tproxy }', 'veth1', true, 'no interfaces: those of all endpoints'],
    [`${named}, { port: 10054, mode: tproxy }`, 'veth1', true, 'a later listener'],
  ]
  for (const [listeners, name, expected, reason] of rows) {
    assert.equal(intercepts(mkPlan({ listeners }), name), expected, reason)
  }
})

test('makePlan gives each family the address of its listener', () => {
  const rows: readonly (readonly [address: string, targets: object, reason: string])[] = [
    ['0.0.0.0', { 4: { address: undefined, port: 9 } }, 'all of IPv4'],
    ['127.0.0.1', { 4: { address: '127.0.0.1', port: 9 } }, 'one of IPv4'],
    ['::1', { 6: { address: '::1', port: 9 } }, 'one of IPv6'],
    [
      '::',
      { 4: { address: undefined, port: 9 }, 6: { address: undefined, port: 9 } },
      'both, as listeners do',
    ],
  ]
  for (const [address, targets, reason] of rows) {
    const { tproxy } = mkPlan({ listeners: `{ address: '${address}', port: 9, mode: tproxy }` })
    assert.deepEqual(tproxy[0]?.targets, targets, reason)
  }
})

test('makePlan passes our own queries by a redirect only to servers that we ask at port 53', () => {
  const listeners = '{ port: 5300, mode: redirect }'
  const rows: readonly (readonly [more: string, exempt: object | undefined, reason: string])[] = [
    ['', { 4: ['192.0.2.53'], 6: ['2001:db8:53::53'] }, 'the pool; port 5353 is not redirected'],
    [
      'upstreams: { original-destination: true, trusted: [10.96.0.10/32] }',
      { 4: ['10.96.0.10/32', '192.0.2.53'], 6: ['2001:db8:53::53'] },
      'the trusted servers, too',
    ],
    [
      'upstreams: { trusted: [10.96.0.10/32] }',
      { 4: ['192.0.2.53'], 6: ['2001:db8:53::53'] },
      'a server that is never asked is not exempt',
    ],
    [
      'upstreams: { original-destination: true, untrusted: pass }',
      undefined,
      'any server that clients ask',
    ],
  ]
  for (const [more, exempt, reason] of rows) {
    assert.deepEqual(mkPlan({ listeners, more }).redirect?.exempt, exempt, reason)
  }
  assert.equal(mkPlan({ listeners, uid: 42 }).redirect?.uid, 42)
})

test('makePlan leaves IPv6 out if the host has none, and reports it, unless a listener needs it', () => {
  const plan = mkPlan({ listeners: '{ port: 9, mode: tproxy }', hasIpv6: false })
  assert.deepEqual([plan.families, plan.tproxy[0]?.targets[6]], [[4], undefined])
  assert.match(plan.notes.join(), /IPv6 is left out/)
  assert.throws(
    () => maybePlan({ listeners: "{ address: 'fd00::1', port: 9, mode: tproxy }", hasIpv6: false }),
    (error) => error instanceof UnavailableError && /no IPv6: turn it on/.test(error.message),
  )
})

test('makePlan refuses what no rule can express', () => {
  const rows: readonly (readonly [listener: string, fault: RegExp])[] = [
    ['{ port: 0, mode: tproxy }', /found port 0, expected a fixed one/],
    [
      '{ port: 9, mode: redirect, interfaces: [eth0] }',
      /only mode tproxy has them, found redirect/,
    ],
    [
      '{ port: 9, mode: tproxy, processes: cgroups }',
      /listeners\[0\]: found processes: cgroups, expected mode redirect, found mode tproxy/,
    ],
    [
      '{ port: 9, mode: redirect }, { port: 11, mode: redirect, processes: cgroups }',
      /found processes: cgroups, expected all, as the first listener of mode redirect has/,
    ],
    ['{ port: 9, interfaces: [eth0] }', /only mode tproxy has them, found explicit/],
    [`{ port: 9, mode: tproxy, interfaces: ['a"b'] }`, /expected a name of 1 to 15 characters/],
    [`{ port: 9, mode: tproxy, interfaces: ['lx+'] }`, /expected a name/],
    [`{ port: 9, mode: tproxy, interfaces: ['a*b*'] }`, /expected a name/],
    [`{ port: 9, mode: tproxy, interfaces: [sixteen-letters-x] }`, /expected a name/],
  ]
  for (const [listener, fault] of rows) {
    assert.throws(
      () => maybePlan({ listeners: `${listener}, { port: 10, mode: tproxy }` }),
      (error) => error instanceof InvalidInputError && fault.test(error.message),
      listener,
    )
  }
})
