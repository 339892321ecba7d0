// The small parts below the reflector: waits, the gate, versions, objects, paths, lines.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RandomPool, systemRandom } from '../../src/core/random.ts'
import {
  Backoff,
  RETRY_AFTER_MAX_MS,
  WAIT_MAX_MS,
  WAIT_MIN_MS,
  WAIT_MS,
} from '../../src/kubernetes/reflector/backoff.ts'
import { COLLECTIONS, describeRule, targetsOf } from '../../src/kubernetes/reflector/collections.ts'
import { LineSplitter } from '../../src/kubernetes/connection/line-splitter.ts'
import { readObject } from '../../src/kubernetes/reflector/objects.ts'
import { RelistGate } from '../../src/kubernetes/reflector/relist-gate.ts'
import { isOlder } from '../../src/kubernetes/reflector/resource-version.ts'
import { readEvent } from '../../src/kubernetes/reflector/watch-event.ts'

const POD = { apiVersion: 'v1', kind: 'Pod' }

test('Backoff doubles the bound of a random wait, respects Retry-After, and begins anew after a success', () => {
  const backoff = new Backoff(new RandomPool({ fill: (target) => target.fill(0x80) }))
  const waits = Array.from({ length: 8 }, () => backoff.next() - WAIT_MIN_MS)
  const half = (bound: number): number => Math.floor((0x8080 / 65_536) * bound)
  const bounds = [1, 2, 4, 8, 16, 30, 30, 30].map((seconds) => seconds * WAIT_MS)
  assert.deepEqual(waits, bounds.map(half))
  assert.equal(backoff.next(7_000), 7_000 + half(WAIT_MAX_MS))
  assert.equal(backoff.next(1e9), RETRY_AFTER_MAX_MS + half(WAIT_MAX_MS), 'a huge Retry-After')
  backoff.reset()
  assert.equal(backoff.next(), WAIT_MIN_MS + half(WAIT_MS))
})

test('Backoff spreads many waits over the whole time', () => {
  const random = new RandomPool(systemRandom)
  const waits = Array.from({ length: 1_000 }, () => new Backoff(random).next() - WAIT_MIN_MS)
  const tenths = Array.from(
    { length: 10 },
    (_, i) => waits.filter((ms) => Math.floor(ms / 100) === i).length,
  )
  assert.ok(
    tenths.every((count) => count > 50),
    `waits by tenths of a second: ${tenths.join(' ')}`,
  )
})

test('RelistGate gives one turn at a time, in the order of arrival', () => {
  const gate = new RelistGate()
  const begun: string[] = []
  const enter = (name: string): (() => void) => gate.enter(() => begun.push(name))
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(enter)
  assert.deepEqual(begun, ['a'])
  b?.() // leaves the queue
  a?.()
  a?.() // a second time does nothing
  assert.deepEqual(begun, ['a', 'c'])
  c?.()
  assert.deepEqual(begun, ['a', 'c', 'd'])
  d?.()
  enter('e')
  assert.deepEqual(begun, ['a', 'c', 'd', 'e'])
})

test('isOlder compares decimal versions of any length, and nothing else', () => {
  const rows: readonly (readonly [
    version: string,
    known: string,
    isOlder: boolean,
    reason: string,
  ])[] = [
    ['9', '10', true, 'shorter'],
    ['10', '9', false, 'longer'],
    ['19', '20', true, 'the same length'],
    ['20', '20', false, 'equal'],
    ['18446744073709551616', '18446744073709551617', true, 'more than 64 bits'],
    ['a1', 'a2', false, 'not decimal'],
    ['010', '20', false, 'a leading zero is no version'],
    ['1', '', false, 'nothing known'],
  ]
  for (const [version, known, expected, reason] of rows) {
    assert.equal(isOlder(version, known), expected, reason)
  }
})

test('isOlder agrees with BigInt (property)', () => {
  const version = fc.bigInt({ min: 1n, max: 2n ** 70n })
  fc.assert(fc.property(version, version, (a, b) => isOlder(String(a), String(b)) === a < b))
})

const METADATA = { name: 'a', namespace: 'shop', uid: 'u', resourceVersion: '7' }

test('readObject keeps what namegate uses, and adds the kind', () => {
  const given = {
    metadata: {
      ...METADATA,
      labels: { app: 'x' },
      managedFields: [1],
      deletionTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { nodeName: 'n' },
    specs: undefined,
    status: { phase: 'Running' },
  }
  const { managedFields: _, ...kept } = given.metadata
  assert.deepEqual(readObject(given, POD), {
    kind: 'object',
    object: { ...POD, ...given, metadata: kept },
  })
})

test('readObject reads only the fields that a kind names', () => {
  const spec = { nodeName: 'n', containers: [{ image: 'i' }] }
  const given = { metadata: { ...METADATA, annotations: { a: 'b' } }, spec, status: { phase: 'x' } }
  const kind = { ...POD, only: { spec: ['nodeName', 'hostNetwork'], status: [] } }
  const read = readObject(given, kind)
  assert.ok(read.kind === 'object')
  const { metadata, spec: found, status } = read.object
  assert.deepEqual([metadata, found, status], [METADATA, { nodeName: 'n' }, {}])
})

test('readObject says what is wrong with an object', () => {
  const rows: readonly (readonly [value: unknown, fault: string, reason: string])[] = [
    [null, 'Pod: found nothing, expected an object', 'nothing'],
    [[], 'Pod: found an empty list, expected an object', 'a list'],
    [{}, 'Pod: found nothing, expected metadata', 'no metadata'],
    [{ metadata: { ...METADATA, name: '' } }, 'Pod: found "", expected metadata.name', 'no name'],
    [
      { metadata: { ...METADATA, uid: 7 } },
      'Pod shop/a: found 7, expected metadata.uid',
      'a number',
    ],
    [
      { metadata: { ...METADATA, resourceVersion: undefined } },
      'Pod shop/a: found nothing, expected metadata.resourceVersion',
      'no version',
    ],
    [
      { metadata: { ...METADATA, labels: { a: 1 } } },
      'Pod shop/a: found a mapping, expected metadata.labels with texts',
      'a label that is no text',
    ],
  ]
  for (const [value, fault, reason] of rows) {
    assert.deepEqual(readObject(value, POD), { kind: 'fault', fault }, reason)
  }
})

test('readObject keeps a label named __proto__ a label', () => {
  const text =
    '{"metadata":{"name":"a","uid":"u","resourceVersion":"1","labels":{"__proto__":"x","constructor":"y"}}}'
  const read = readObject(JSON.parse(text), POD)
  const labels = read.kind === 'object' ? (read.object.metadata.labels ?? {}) : {}
  assert.deepEqual(Object.entries(labels), [
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ])
  assert.equal(Object.getPrototypeOf(labels), Object.prototype)
})

test('readObject and readEvent take any JSON (property)', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (value, object) => {
      readObject(value, POD)
      readObject({ metadata: value }, POD)
      for (const type of ['ADDED', 'BOOKMARK', 'ERROR', value]) readEvent({ type, object }, POD)
    }),
  )
})

test('targetsOf makes the paths of the requests', () => {
  const names = [
    'pods',
    'peers',
    'namespaces',
    'network-policies',
    'cilium-policies',
    'cluster-network-policies',
  ]
  const all = targetsOf({ names, node: 'node-1', namespaces: [] })
  assert.deepEqual(
    all.map(({ path, selector }) => [path, ...selector.map((each) => each.join('='))].join(' ')),
    [
      '/api/v1/pods fieldSelector=spec.nodeName=node-1',
      '/api/v1/pods fieldSelector=spec.nodeName!=node-1',
      '/api/v1/namespaces',
      '/apis/networking.k8s.io/v1/networkpolicies',
      '/apis/cilium.io/v2/ciliumnetworkpolicies',
      '/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies',
      '/apis/policy.networking.k8s.io/v1alpha2/clusternetworkpolicies',
    ],
  )
  const some = targetsOf({ names: ['pods', 'namespaces'], node: 'n', namespaces: ['a', 'b'] })
  assert.deepEqual(
    some.map(({ path }) => path),
    ['/api/v1/namespaces/a/pods', '/api/v1/namespaces/b/pods', '/api/v1/namespaces'],
    'one target for each namespace, and all namespaces',
  )
  assert.deepEqual(some.map((each) => describeRule(each, 'list')).slice(0, 1), [
    'verb list for resource pods of API group "" in namespace a',
  ])
  assert.equal(new Set(COLLECTIONS.map(({ kind }) => kind)).size, COLLECTIONS.length)
})

test('LineSplitter gives the same lines however the octets are cut (property)', () => {
  const line = fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\n', ' '))
  fc.assert(
    fc.property(
      fc.array(line),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      (lines, sizes) => {
        const octets = Buffer.from(lines.map((each) => `${each}\n`).join(''))
        const found: string[] = []
        const splitter = new LineSplitter(1_000, (each) => found.push(each))
        for (let start = 0, i = 0; start < octets.length; i++) {
          const end = start + (sizes[i % sizes.length] ?? 1)
          assert.ok(splitter.take(octets.subarray(start, end)))
          start = end
        }
        assert.equal(splitter.isInsideLine, false)
        assert.deepEqual(
          found,
          lines.filter((each) => each !== '').map((each) => Buffer.from(each).toString()),
        )
      },
    ),
  )
})

test('LineSplitter refuses a line above the bound, whole or in parts', () => {
  const rows: readonly (readonly [parts: readonly string[], fits: boolean, reason: string])[] = [
    [['12345\n12345'], true, 'two lines at the bound'],
    [['123456\n'], false, 'one octet more'],
    [['123', '456'], false, 'in parts, without an end'],
  ]
  for (const [parts, fits, reason] of rows) {
    const splitter = new LineSplitter(5, () => undefined)
    assert.equal(
      parts.every((each) => splitter.take(Buffer.from(each))),
      fits,
      reason,
    )
  }
})
