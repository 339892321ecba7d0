import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { EMPTY_SET, LabelSets, longestCidr } from '../../src/core/labels.ts'

const TEXTS = [
  'fqdn:*.x',
  'fqdn:a.x',
  'cidr:10.0.0.0/8',
  'k8s:app=a',
  'k8s:app=b',
  'reserved:world',
]

test('LabelSets gives a set one number, in any order of labels and however it was made', () => {
  const some = fc.subarray(TEXTS)
  fc.assert(
    fc.property(some, some, fc.nat(), (a, b, seed) => {
      const sets = new LabelSets()
      const shuffled = [...a, ...a].sort(
        (x, y) => ((x.length * seed) % 7) - ((y.length * seed) % 7),
      )
      const [left, right] = [sets.intern(a), sets.intern(b)]
      assert.equal(sets.intern(shuffled), left, 'order and doubles')
      assert.equal(left === right, String(a) === String(b))
      const both = sets.union(left, right)
      assert.deepEqual(sets.format(both), [...new Set([...a, ...b])].sort())
      assert.equal(sets.union(right, left), both)
      assert.equal(sets.union(left, right), both, 'from the cache')
      assert.equal(sets.intern([...b, ...a]), both)
      assert.equal(sets.internLabels(sets.get(both).labels), both)
    }),
  )
})

test('LabelSets returns the labels of a set', () => {
  const sets = new LabelSets()
  const set = sets.get(sets.intern(['cidr:10.0.0.0/8', 'fqdn:a', 'fqdn:b', 'k8s:app=a']))
  assert.equal(set.fqdnCount, 2)
  assert.equal(set.cidr?.text, 'cidr:10.0.0.0/8')
  assert.equal(sets.find('k8s:app=a')?.key, 'k8s:app')
  assert.equal(sets.find('fqdn:a')?.key, 'fqdn:a', 'a fqdn label is its own key')
  assert.equal(sets.find('fqdn:none'), undefined)
  assert.deepEqual(sets.get(EMPTY_SET).labels, [])
  assert.equal(sets.intern([]), EMPTY_SET)
})

test('LabelSets.collect frees sets without a reference, label by label, and gives no number twice', () => {
  const sets = new LabelSets()
  const kept = sets.intern(['fqdn:a', 'fqdn:b'])
  const loose = sets.intern(['fqdn:b', 'fqdn:c'])
  sets.retain(kept)
  sets.collect()
  assert.deepEqual([sets.has(kept), sets.has(loose), sets.size], [true, false, 2])
  assert.equal(sets.find('fqdn:c'), undefined)
  assert.ok(sets.find('fqdn:b') !== undefined, 'still in the kept set')
  assert.throws(() => sets.get(loose), /lives/)
  const again = sets.intern(['fqdn:b', 'fqdn:c'])
  assert.ok(again > loose)
  sets.retain(again)
  assert.deepEqual(sets.format(sets.union(kept, again)), ['fqdn:a', 'fqdn:b', 'fqdn:c'])
  sets.release(kept)
  sets.retain(kept)
  sets.collect()
  assert.ok(sets.has(kept), 'retained again before the collection')
  sets.release(kept)
  sets.release(again)
  sets.collect()
  assert.equal(sets.size, 1)
  assert.throws(() => sets.release(kept), /is retained/)
})

test('LabelSets returns a union from its cache only while that set lives', () => {
  const sets = new LabelSets()
  const [a, b] = [sets.intern(['fqdn:a']), sets.intern(['fqdn:b'])]
  sets.retain(a)
  sets.retain(b)
  const gone = sets.union(a, b)
  sets.collect()
  const fresh = sets.union(a, b)
  assert.notEqual(fresh, gone)
  assert.deepEqual(sets.format(fresh), ['fqdn:a', 'fqdn:b'])
})

test('longestCidr returns the longest of several cidr labels', () => {
  const sets = new LabelSets()
  const set = sets.get(
    sets.intern(['cidr:10.0.0.0/8', 'cidr:10.1.0.0/16', 'cidr:0.0.0.0/0', 'fqdn:a']),
  )
  assert.equal(longestCidr(set.labels)?.text, 'cidr:10.1.0.0/16')
  assert.equal(longestCidr([]), undefined)
})
