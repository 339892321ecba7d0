import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  containsPrefix,
  formatPrefix,
  truncatePrefix,
  widthOf,
  type Prefix,
} from '../../../src/core/ip.ts'
import { PrefixIndex } from '../../../src/core/tables/prefix-index.ts'
import { prefixOf } from '../../support/nodes/node.ts'
import { runsOf } from '../../support/properties.ts'
import { Random } from '../../support/models/random.ts'

/** Few distinct addresses, so that prefixes contain one another often. */
function randomPrefix(random: Random): Prefix {
  const family = random.oneIn(2) ? 4 : 6
  const octets = new Uint8Array(16)
  for (let i = 0; i < widthOf(family) / 8; i++) octets[i] = random.pick([0, 1, 0x80, 0xff])
  return truncatePrefix(
    { family, octets, length: widthOf(family) },
    random.below(widthOf(family) + 1),
  )
}

function longest(index: PrefixIndex, { family, octets }: Prefix): number {
  for (let length = widthOf(family); length >= 0; length--) {
    const row = index.findAround(family, octets, 0, length)
    if (row !== 0) return row
  }
  return 0
}

test('PrefixIndex finds prefixes and longest matches like a scan over a list', () => {
  const random = new Random(11)
  const index = new PrefixIndex({ capacity: 200 })
  const known = new Map<string, { readonly row: number; readonly prefix: Prefix }>()
  for (let i = 0; i < runsOf(6000); i++) {
    const prefix = randomPrefix(random)
    const { family, octets, length } = prefix
    const entry = known.get(formatPrefix(prefix))
    assert.equal(index.find(family, octets, 0, length), entry?.row ?? 0)
    if (entry !== undefined && random.oneIn(2)) {
      index.remove(entry.row)
      known.delete(formatPrefix(prefix))
    } else if (entry === undefined) {
      const row = index.add(family, octets, 0, length)
      assert.equal(row === 0, known.size === 200, 'full at its capacity only')
      if (row !== 0) known.set(formatPrefix(prefix), { row, prefix })
    }
    const address = { ...randomPrefix(random), length: widthOf(family) }
    const around = [...known.values()]
      .filter((each) =>
        containsPrefix(each.prefix, { ...address, length: widthOf(address.family) }),
      )
      .sort((a, b) => b.prefix.length - a.prefix.length)
    assert.equal(longest(index, address), around[0]?.row ?? 0)
  }
  assert.equal(index.slots.used, known.size)
})

test('PrefixIndex keeps families and lengths of the same octets apart', () => {
  const index = new PrefixIndex({ capacity: 8 })
  const texts = ['0.0.0.0/0', '::/0', '0.0.0.0/32', '::/32', '::/128']
  const rows = texts.map((text) => {
    const { family, octets, length } = prefixOf(text)
    return index.add(family, octets, 0, length)
  })
  assert.equal(new Set(rows).size, texts.length)
  assert.deepEqual(
    rows.map((row) => formatPrefix(index.prefix(row))),
    texts,
  )
})
