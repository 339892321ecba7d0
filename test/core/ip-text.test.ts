// The fast reader of usual addresses, compared with the whole parser.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IPv4, IPv6 } from 'ip-num'
import { parseAddress } from '../../src/core/ip.ts'

test('parseAddress reads plain dotted quads like ip-num', () => {
  const part = fc.oneof(
    fc.nat(300).map(String),
    fc.constantFrom('0', '00', '01', '255', '256', '999'),
  )
  fc.assert(
    fc.property(fc.array(part, { minLength: 4, maxLength: 4 }), (parts) => {
      const text = parts.join('.')
      let octets: readonly number[] | undefined
      try {
        octets = new IPv4(text).getOctets().map((octet) => octet.getValue())
      } catch {
        octets = undefined
      }
      const parsed = parseAddress(text)
      assert.deepEqual(parsed === undefined ? undefined : [...parsed.octets.subarray(0, 4)], octets)
    }),
  )
})

test('parseAddress reads plain groups like ip-num', () => {
  // Mostly addresses, and texts that are nearly addresses: too many groups, two gaps, long groups, lonely colons.
  const group = fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 0, max: 0xffff }).map((n) => n.toString(16)) },
    { weight: 1, arbitrary: fc.constantFrom('', '0', '0000', 'FFFF', '00001', 'g') },
  )
  const text = fc
    .tuple(fc.array(group, { minLength: 1, maxLength: 9 }), fc.array(fc.nat(9), { maxLength: 2 }))
    .map(([groups, gaps]) => {
      for (const gap of gaps) groups.splice(gap, 0, '')
      return groups.join(':')
    })
    .filter((each) => each.includes(':'))
  const counts = { good: 0, bad: 0 }
  const byIpNum = (each: string): bigint | undefined => {
    try {
      return new IPv6(each).getValue()
    } catch {
      return undefined
    }
  }
  const check = (each: string): void => {
    const value = byIpNum(each)
    if (value === undefined) counts.bad++
    else counts.good++
    const found = parseAddress(each)
    assert.equal(found === undefined, value === undefined, each)
    if (found === undefined || found.family === 4) return
    assert.equal(BigInt(`0x${Buffer.from(found.octets).toString('hex')}`), value, each)
  }
  fc.assert(fc.property(text, check), { numRuns: 5000 })
  for (const each of ['::', ':', '::1', '1::', ':1', '1:', ':::', '1::2::3', '::1:2:3:4:5:6:7:8']) {
    check(each)
  }
  check('1:2:3:4:5:6:7::')
  check('::2:3:4:5:6:7:8')
  check('1:2:3:4::5:6:7:8')
  assert.ok(counts.good > 500 && counts.bad > 500, JSON.stringify(counts))
})
