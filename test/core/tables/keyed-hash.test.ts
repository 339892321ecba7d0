// Keys are fixed here, so that the counts are the same in every run.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import fc from 'fast-check'
import { hashOctets, hashPair, type HashKey } from '../../../src/core/tables/keyed-hash.ts'
import { Random } from '../../support/models/random.ts'

const ONE: HashKey = { low: 0x03020100, high: 0x07060504 }
const OTHER: HashKey = { low: 0x0badcafe, high: 0x1234567 }
const BUCKETS = 256
/** A bucket has 256 of these on average. */
const INPUTS = BUCKETS * 256
/** 256 keys that fall into 256 buckets by chance: one has 12 in one of 3 million cases. */
const FULLEST = 12

function mkTables(seed: number): Uint32Array {
  const random = new Random(seed)
  return Uint32Array.from({ length: 8 * 256 }, () => random.below(2 ** 32))
}

/** The number of keys in the fullest bucket. */
function fullest<Key>(keys: readonly Key[], hash: (key: Key) => number): number {
  const counts = new Uint32Array(BUCKETS)
  for (const key of keys) counts[hash(key) % BUCKETS]!++
  return Math.max(...counts)
}

test('hashOctets is HalfSipHash-1-3, by its published values for 0, 1, 2 ... octets', () => {
  const octets = Uint8Array.from({ length: 64 }, (_, i) => i)
  const rows: readonly (readonly [length: number, hash: number])[] = [
    [0, 0x5814c896],
    [1, 0xe7e864ca],
    [2, 0xbc4b0e30],
    [3, 0x01539939],
    [4, 0x7e059ea6],
    [5, 0x88e3d89b],
    [8, 0x577999b1],
    [63, 0x87178304],
  ]
  for (const [length, hash] of rows) assert.equal(hashOctets(octets, 0, length, ONE), hash)
})

test('hashOctets reads only the given octets', () => {
  const octets = fc.uint8Array({ maxLength: 40 })
  fc.assert(
    fc.property(octets, octets, octets, (before, own, behind) => {
      const all = Uint8Array.from([...before, ...own, ...behind])
      const hash = hashOctets(all, before.length, own.length)
      assert.equal(hash, hashOctets(own, 0, own.length))
      assert.ok(Number.isInteger(hash) && hash >= 0 && hash < 2 ** 32)
    }),
  )
})

test('hashOctets scatters inputs under another key that share a bucket under one key', () => {
  const rows: readonly (readonly [what: string, mk: (i: number) => Uint8Array])[] = [
    ['names', (i) => Buffer.from(`\x06h${String(i).padStart(5, '0')}\x07example\0`)],
    ['names that differ in two places', (i) => Buffer.from(`\x03${i >> 8}\x03www\x03${i & 255}\0`)],
    ['IPv4 addresses', (i) => Uint8Array.of(10, i >> 16, i >> 8, i)],
    [
      'IPv6 addresses',
      (i) => Uint8Array.of(32, 1, ...Array<number>(11).fill(0), i >> 16, i >> 8, i),
    ],
    ['IPv6 networks', (i) => Uint8Array.of(32, 1, i >> 8, i, ...Array<number>(12).fill(0))],
  ]
  for (const [what, mk] of rows) {
    const all = Array.from({ length: INPUTS }, (_, i) => mk(i))
    const chosen = all.filter((key) => hashOctets(key, 0, key.length, ONE) % BUCKETS === 0)
    assert.ok(chosen.length > 180, `${what}: ${chosen.length} share a bucket`)
    const most = fullest(chosen, (key) => hashOctets(key, 0, key.length, OTHER))
    assert.ok(most < FULLEST, `${what}: ${most} of ${chosen.length} share one again`)
  }
})

test('hashOctets has no differences of two octets that cancel under every key', () => {
  // Where each step is a multiplication, the highest bit of one word and a bit of the next one cancel.
  const keys = [ONE, OTHER]
  const zero = new Uint8Array(8)
  for (let a = 0; a < 32; a++) {
    for (let b = 32; b < 64; b++) {
      const other = new Uint8Array(8)
      other[a >> 3] = 1 << (a & 7)
      other[b >> 3] = 1 << (b & 7)
      const same = keys.filter(
        (key) => hashOctets(zero, 0, 8, key) === hashOctets(other, 0, 8, key),
      )
      assert.deepEqual(same, [], `bits ${a} and ${b}`)
    }
  }
})

test('hashPair scatters pairs under other tables that share a bucket under some tables', () => {
  const [one, other] = [mkTables(1), mkTables(2)]
  const rows: readonly (readonly [what: string, mk: (i: number) => readonly [number, number]])[] = [
    ['rows beside each other', (i) => [i >> 8, i & 255]],
    ['one row and many', (i) => [7, i]],
    ['many rows and one', (i) => [i, 7]],
    ['a row and itself', (i) => [i, i]],
    ['hashes', (i) => [Math.imul(i, 0x9e3779b1), 0xffffffff]],
  ]
  for (const [what, mk] of rows) {
    const all = Array.from({ length: INPUTS }, (_, i) => mk(i))
    const chosen = all.filter(([a, b]) => hashPair(a, b, one) % BUCKETS === 0)
    assert.ok(chosen.length > 180, `${what}: ${chosen.length} share a bucket`)
    const most = fullest(chosen, ([a, b]) => hashPair(a, b, other))
    assert.ok(most < FULLEST, `${what}: ${most} of ${chosen.length} share one again`)
  }
})

test('hashPair depends on the order of the pair', () => {
  assert.notEqual(hashPair(1, 2, mkTables(1)), hashPair(2, 1, mkTables(1)))
})

test('hashOctets and hashPair differ from process to process', () => {
  const program = `import { hashOctets, hashPair } from './src/core/tables/keyed-hash.ts'
    console.log(hashOctets(Uint8Array.of(1, 2, 3), 0, 3), hashPair(1, 2))`
  const args = ['--import', 'tsx', '--input-type=module', '--eval', program]
  const [one, other] = [1, 2].map(() => execFileSync(process.execPath, args, { encoding: 'utf8' }))
  assert.match(one ?? '', /^\d+ \d+\n$/)
  assert.notEqual(one, other)
})
