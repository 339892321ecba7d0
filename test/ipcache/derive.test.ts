// Deriver.derive makes the labels of a prefix from its own labels and those of the prefixes around it. Rows for each rule of
// docs/spec/semantics 3, and laws.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Identity } from '../../src/core/ids.ts'
import { EMPTY_SET, LabelSets } from '../../src/core/labels.ts'
import {
  ENDPOINT_CLASS,
  HOST,
  RESOURCE_CLASS,
  WORLD_IPV4,
  WORLD_IPV6,
} from '../../src/identity/reserved.ts'
import { Deriver, isKnownClass } from '../../src/ipcache/derive.ts'

const W4 = ['reserved:world', 'reserved:world-ipv4']
const W6 = ['reserved:world', 'reserved:world-ipv6']

type Row = readonly [
  own: readonly string[],
  around: readonly string[],
  of: Identity,
  expected: readonly string[],
  reason: string,
]

const ROWS: readonly Row[] = [
  [[], [], WORLD_IPV4, W4, 'nothing but the world'],
  [['fqdn:a'], [], WORLD_IPV6, ['fqdn:a', ...W6], 'the world of its family'],
  [
    ['fqdn:a'],
    ['cidr:10.0.0.0/8', ...W4],
    WORLD_IPV4,
    ['cidr:10.0.0.0/8', 'fqdn:a', ...W4],
    'inherits',
  ],
  [
    ['cidr:10.1.0.0/16'],
    ['cidr:10.0.0.0/8', ...W4],
    WORLD_IPV4,
    ['cidr:10.1.0.0/16', ...W4],
    'only the longest cidr',
  ],
  [['k8s:a=1'], ['k8s:a=2', 'k8s:b=2'], RESOURCE_CLASS, ['k8s:a=1', 'k8s:b=2'], 'its own key wins'],
  [
    ['fqdn:a', 'fqdn:b'],
    ['fqdn:c', ...W4],
    WORLD_IPV4,
    ['fqdn:a', 'fqdn:b', 'fqdn:c', ...W4],
    'a fqdn label is its own key',
  ],
  [
    ['cidr:10.0.0.1/32', 'k8s:a=1'],
    ['cidr:10.0.0.0/8', ...W4],
    ENDPOINT_CLASS,
    ['k8s:a=1'],
    'an endpoint: no cidr, no world',
  ],
  [['reserved:host'], ['cidr:10.0.0.0/8', ...W4], HOST, ['reserved:host'], 'the node'],
  [[], ['k8s:a=1'], ENDPOINT_CLASS, ['k8s:a=1'], 'only what is around'],
]

for (const [own, around, of, expected, reason] of ROWS) {
  test(`Deriver.derive: ${reason}`, () => {
    const sets = new LabelSets()
    const deriver = new Deriver({ labelSets: sets })
    const family = of === WORLD_IPV6 ? 6 : 4
    const derive = () => deriver.derive(sets.intern(own), sets.intern(around), of, family)
    assert.deepEqual(sets.format(derive()), expected)
    assert.equal(derive(), derive(), 'from the cache')
  })
}

test('Deriver.derive is idempotent, and keeps every own label that is not a shorter cidr', () => {
  const some = fc.subarray(['fqdn:a', 'fqdn:b', 'k8s:a=1', 'cidr:10.0.0.0/8'])
  fc.assert(
    fc.property(
      some,
      fc.subarray(['fqdn:c', 'k8s:a=2', 'cidr:0.0.0.0/0', ...W4]),
      (own, around) => {
        const sets = new LabelSets()
        const deriver = new Deriver({ labelSets: sets })
        const derived = deriver.derive(sets.intern(own), sets.intern(around), WORLD_IPV4, 4)
        assert.equal(deriver.derive(derived, sets.intern(around), WORLD_IPV4, 4), derived)
        for (const label of own) assert.ok(sets.format(derived).includes(label), label)
      },
    ),
  )
})

test('Deriver.derive does not trust its cache after a set was freed', () => {
  const sets = new LabelSets()
  const deriver = new Deriver({ labelSets: sets })
  const own = sets.intern(['fqdn:a'])
  sets.retain(own)
  const first = deriver.derive(own, EMPTY_SET, WORLD_IPV4, 4)
  sets.collect()
  const second = deriver.derive(own, EMPTY_SET, WORLD_IPV4, 4)
  assert.notEqual(second, first)
  assert.deepEqual(sets.format(second), ['fqdn:a', ...W4])
})

test('isKnownClass tells the node, endpoints and resources from the world', () => {
  const classes = [HOST, ENDPOINT_CLASS, RESOURCE_CLASS, WORLD_IPV4, WORLD_IPV6]
  assert.deepEqual(classes.map(isKnownClass), [true, true, true, false, false])
})
