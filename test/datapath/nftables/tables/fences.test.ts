import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { matches, nameRanges } from '../../../../src/datapath/nftables/tables/fences.ts'

/** True if a name is in the ranges. Compares octet by octet, padded with zeros, as the kernel does. */
function isIn(ranges: ReturnType<typeof nameRanges>, name: string): boolean {
  const octets = Buffer.alloc(16)
  octets.write(name)
  const below = ranges.filter(({ key }) => Buffer.compare(octets, key) >= 0)
  const last = below.at(-1)
  return last !== undefined && last.isEnd !== true
}

test('nameRanges covers names and patterns, and never lo', () => {
  const rows: readonly (readonly [readonly string[], string, boolean, string])[] = [
    [[], 'lxc1', false, 'nothing'],
    [['lxc1'], 'lxc1', true, 'the name'],
    [['lxc1'], 'lxc10', false, 'a longer name'],
    [['lxc1'], 'lxc', false, 'a shorter one'],
    [['lxc*'], 'lxc', true, 'the beginning alone'],
    [['lxc*'], 'lxcabcdefghijkl', true, 'the longest'],
    [['lxc*'], 'lxd', false, 'behind'],
    [['*'], 'eth0', true, 'all'],
    [['*'], 'lo', false, 'but lo'],
    [['*'], 'lo1', true, 'only lo itself is left out'],
    [['l*'], 'lo', false, 'in a pattern'],
    [['lo'], 'lo', false, 'by name'],
  ]
  for (const [patterns, name, expected, reason] of rows) {
    assert.equal(isIn(nameRanges(patterns), name), expected, `${patterns.join(' ')}: ${reason}`)
    assert.equal(
      patterns.some((pattern) => matches(pattern, name)),
      expected,
      `matches, ${patterns.join(' ')}: ${reason}`,
    )
  }
})

const letters = fc.constantFrom('a', 'b', 'l', 'o', 'z', '0')
const name = fc.array(letters, { minLength: 1, maxLength: 6 }).map((each) => each.join(''))
const pattern = fc
  .tuple(fc.array(letters, { maxLength: 4 }), fc.boolean())
  .map(([each, isOpen]) => (isOpen || each.length === 0 ? `${each.join('')}*` : each.join('')))

test('nameRanges agrees with matches and its ranges are in order and apart', () => {
  fc.assert(
    fc.property(fc.array(pattern, { maxLength: 8 }), fc.array(name), (patterns, names) => {
      const ranges = nameRanges(patterns)
      ranges.forEach(({ key, isEnd }, i) => {
        const next = ranges[i + 1]
        if (next === undefined) return
        const order = Buffer.compare(key, next.key)
        assert.ok(order < 0 || (order === 0 && isEnd === true), 'in order')
      })
      for (const each of names) {
        assert.equal(
          isIn(ranges, each),
          patterns.some((one) => matches(one, each)),
          `${each} in ${patterns.join(' ')}`,
        )
      }
    }),
  )
})
