// Entries of the kernel from an earlier daemon: each is found and taken once, and the last one frees the memory.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { identity } from '../../src/core/ids.ts'
import { parsePrefix, type Prefix } from '../../src/core/ip.ts'
import { InheritedEntries } from '../../src/datapath/inherited-entries.ts'
import { PrefixBatch } from '../../src/datapath/prefix-batch.ts'
import { WORLD_IPV4 } from '../../src/identity/reserved.ts'

const [ONE, TWO] = [identity(1 << 24), identity((1 << 24) + 1)]

function mkPrefix(text: string): Prefix {
  const parsed = parsePrefix(text)
  assert.equal(parsed.kind, 'ok')
  return parsed.prefix
}

/** `[prefix, scope]` for each entry, all with identity ONE. */
function mkEntries(...entries: readonly (readonly [prefix: string, scope: number])[]): PrefixBatch {
  const batch = new PrefixBatch(1)
  for (const [text, scope] of entries) batch.add(mkPrefix(text), ONE, WORLD_IPV4, scope)
  return batch
}

function take(entries: InheritedEntries, text: string, scope = 0, id = ONE): boolean {
  return entries.take(scope, mkPrefix(text), id, WORLD_IPV4)
}

test('InheritedEntries separates prefixes by address, length, family and scope', () => {
  const entries = new InheritedEntries(
    mkEntries(['192.0.2.0/24', 0], ['192.0.2.0/32', 0], ['192.0.2.0/32', 7], ['::c000:200/128', 0]),
  )
  assert.equal(take(entries, '192.0.2.0/25'), false, 'no entry of that length')
  assert.equal(take(entries, '192.0.2.0/32', 8), false, 'no entry of that scope')
  assert.equal(entries.left, 4)
  assert.equal(take(entries, '192.0.2.0/32', 7), true)
  assert.equal(take(entries, '192.0.2.0/32', 7), false, 'taken once')
  assert.equal(take(entries, '192.0.2.0/32'), true)
  assert.equal(take(entries, '192.0.2.0/24', 0, TWO), false, 'another identity is in force')
  assert.equal(entries.isTaken(0), true, 'the entry will be overwritten')
  assert.equal(entries.left, 1)
})

test('InheritedEntries frees the memory with the last entry, and then finds none', () => {
  const batch = mkEntries(['192.0.2.1/32', 0], ['192.0.2.2/32', 0])
  const entries = new InheritedEntries(batch)
  assert.equal(take(entries, '192.0.2.1/32'), true)
  assert.equal(batch.count, 2)
  entries.drop(1)
  assert.equal(batch.count, 0)
  assert.equal(entries.isTaken(0) && entries.isTaken(1), true)
  assert.equal(entries.find(0, mkPrefix('192.0.2.1/32')), -1)
})

test('PrefixBatch.addAll adds entries in the layout of `keys` and `values`', () => {
  const from = mkEntries(['192.0.2.1/32', 3], ['2001:db8::/32', 0])
  const to = mkEntries(['198.51.100.0/24', 0])
  to.addAll(from.keys, from.values, from.count)
  const texts = Array.from({ length: to.count }, (_, i) => `${to.format(i)} ${to.scope(i)}`)
  assert.deepEqual(texts, ['198.51.100.0/24 0', '192.0.2.1/32 3', '2001:db8::/32 0'])
  assert.deepEqual([to.identity(2), to.addressClass(1)], [ONE, WORLD_IPV4])
})
