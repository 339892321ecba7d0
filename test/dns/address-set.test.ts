import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatAddress, type Family } from '../../src/core/ip.ts'
import { AddressSet } from '../../src/dns/address-set.ts'

type Addition = readonly [family: Family, octets: readonly number[], ttl: number]

function list(set: AddressSet): (readonly [text: string, ttl: number, offset: number])[] {
  return Array.from({ length: set.count }, (_, i) => {
    const text = formatAddress(set.families[i] === 4 ? 4 : 6, set.octets, i * 16)
    return [text, set.ttls[i] ?? -1, set.recordOffsets[i] ?? -1] as const
  })
}

function fill(set: AddressSet, additions: readonly Addition[]): void {
  set.clear()
  additions.forEach(([family, octets, ttl], i) => {
    set.from(i, ttl)
    set.add(family, Uint8Array.of(99, ...octets), 1)
  })
}

test('AddressSet.add separates an IPv4 address from the IPv6 address with the same first octets', () => {
  const set = new AddressSet()
  fill(set, [
    [4, [1, 2, 3, 4], 5],
    [6, [1, 2, 3, 4, ...new Uint8Array(12)], 6],
  ])
  assert.deepEqual(list(set), [
    ['1.2.3.4', 5, 0],
    ['102:304::', 6, 1],
  ])
})

test('AddressSet.add reads IPv4-mapped IPv6 as IPv4, and no other embedding', () => {
  const set = new AddressSet()
  fill(set, [
    [6, [...new Uint8Array(10), 255, 255, 1, 2, 3, 4], 5],
    [6, [...new Uint8Array(12), 1, 2, 3, 4], 6],
    [6, [...new Uint8Array(9), 1, 255, 255, 1, 2, 3, 4], 7],
  ])
  assert.deepEqual(
    list(set).map(([text]) => text),
    ['1.2.3.4', '::102:304', '::1:ffff:102:304'],
  )
})

test('AddressSet holds each address once with its least TTL and first place, like a naive map', () => {
  const address = fc.oneof(
    fc.tuple(
      fc.constant<Family>(4),
      fc.tuple(fc.constant(10), fc.constant(0), fc.nat(1), fc.nat(40)),
    ),
    fc.tuple(
      fc.constant<Family>(6),
      fc.nat(20).map((low) => [32, 1, ...new Uint8Array(13), low]),
    ),
  )
  const addition = fc
    .tuple(address, fc.nat(1000))
    .map(([[family, octets], ttl]): Addition => [family, octets, ttl])
  // One set for all runs, so that octets of an earlier answer would be noticed.
  const set = new AddressSet()
  fc.assert(
    fc.property(fc.array(addition, { maxLength: 120, size: 'max' }), (additions) => {
      const want = new Map<string, readonly [text: string, ttl: number, offset: number]>()
      additions.forEach(([family, octets, ttl], i) => {
        const text = formatAddress(family, Uint8Array.from(octets))
        const [, least, first] = want.get(text) ?? [text, Infinity, i]
        want.set(text, [text, Math.min(least, ttl), first])
      })
      fill(set, additions)
      assert.deepEqual(list(set), [...want.values()])
    }),
    { numRuns: 500 },
  )
})
