import assert from 'node:assert/strict'
import { BlockList, isIP } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  commonBits,
  containsPrefix,
  formatAddress,
  formatPrefix,
  isMapped,
  parseAddress,
  parsePrefix,
  truncatePrefix,
  widthOf,
  type Family,
  type Prefix,
} from '../../src/core/ip.ts'

function mkAddress(text: string): Prefix {
  return parseAddress(text) ?? assert.fail(`${text} is an address`)
}

function mkPrefix(text: string): Prefix {
  const result = parsePrefix(text)
  return result.kind === 'ok' ? result.prefix : assert.fail(`${text}: ${result.reason}`)
}

/** The text of an address by the URL parser, which writes IPv6 as RFC 5952 does. */
function byUrl(text: string): string {
  return new URL(`http://${text.includes(':') ? `[${text}]` : text}`).hostname.replaceAll(
    /[[\]]/g,
    '',
  )
}

test('parseAddress reads addresses and nothing else', () => {
  const rows: readonly (readonly [text: string, expected: string | undefined, why: string])[] = [
    ['192.0.2.1', '192.0.2.1', 'IPv4'],
    ['0.0.0.0', '0.0.0.0', 'lowest'],
    ['255.255.255.255', '255.255.255.255', 'highest'],
    ['256.0.0.1', undefined, 'not an octet'],
    ['1.2.3', undefined, 'short form'],
    ['1.2.3.4.5', undefined, 'five parts'],
    ['1.2.3.', undefined, 'empty part'],
    ['0x1.2.3.4', undefined, 'hexadecimal'],
    ['010.1.2.3', undefined, 'leading zero: octal to some readers, decimal to others'],
    ['1.2.3.00', undefined, 'leading zero'],
    [' 1.2.3.4', undefined, 'blank'],
    ['1.2.3.4\n', undefined, 'line feed'],
    ['', undefined, 'nothing'],
    ['1', undefined, 'a number'],
    ['2001:DB8::1', '2001:db8::1', 'IPv6 in lower case'],
    ['2001:0db8:0:0:0:0:0:1', '2001:db8::1', 'in full'],
    ['::', '::', 'all zeros'],
    ['::1', '::1', 'loopback'],
    ['1::', '1::', 'zeros at the end'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0', 'a run of one group is written out'],
    ['::2:3:4:5:6:7:8', '0:2:3:4:5:6:7:8', 'the same in front'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3', 'the longer run'],
    ['1:0:0:2:3:0:0:4', '1::2:3:0:0:4', 'the first of equal runs'],
    ['::ffff:192.0.2.1', '192.0.2.1', 'IPv4-mapped is IPv4'],
    ['::FFFF:c000:201', '192.0.2.1', 'the same in hexadecimal'],
    ['::192.0.2.1', '::c000:201', 'IPv4-compatible stays IPv6'],
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201', 'a quad at the end'],
    ['1:2:3:4:5:6:192.0.2.1', '1:2:3:4:5:6:c000:201', 'a quad behind six groups'],
    ['1:2:3:4:5:6:7:192.0.2.1', undefined, 'a quad behind seven groups'],
    ['::1.2.3.04', undefined, 'leading zero in a quad'],
    ['::1.2.3', undefined, 'short quad'],
    ['1.2.3.4::', undefined, 'a quad not at the end'],
    ['fe80::1%eth0', undefined, 'zone'],
    ['1::2::3', undefined, 'two runs'],
    [':::', undefined, 'three colons'],
    [':1::2', undefined, 'one colon in front'],
    ['1:2:3:4:5:6:7:8:9', undefined, 'nine groups'],
    ['1:2:3:4:5:6:7', undefined, 'seven groups'],
    ['1:2:3:4::5:6:7:8', undefined, 'a run of no group'],
    ['12345::', undefined, 'five digits'],
    ['g::', undefined, 'not hexadecimal'],
    [':', undefined, 'a colon'],
    ['[::1]', undefined, 'brackets'],
  ]
  for (const [text, expected, why] of rows) {
    const address = parseAddress(text)
    const found = address && formatAddress(address.family, address.octets)
    assert.equal(found, expected, `${JSON.stringify(text)}: ${why}`)
    if (address !== undefined) assert.equal(address.length, widthOf(address.family), why)
  }
})

const octet = fc.nat(300)
const quad = fc.tuple(octet, octet, octet, octet).map((parts) => parts.join('.'))
const group = fc.oneof(
  fc.nat(0xffff).map((value) => value.toString(16)),
  fc.constantFrom('', '', '0', '0000', '01', 'FfFf', '12345', 'g'),
)
const groups = fc.array(group, { minLength: 2, maxLength: 9 }).map((parts) => parts.join(':'))
const textArb = fc.oneof(
  quad,
  groups,
  fc.tuple(groups, quad).map(([front, tail]) => `${front}:${tail}`),
  fc
    .tuple(fc.constantFrom('::', '::ffff:', '1::', '::ffff:0:'), quad)
    .map((parts) => parts.join('')),
  fc.ipV4(),
  fc.ipV6(),
  fc.string({ unit: fc.constantFrom(...Array.from('0123456789abf:.%/ x')), maxLength: 20 }),
)

test('parseAddress accepts what node:net accepts, except zones, and formats it like a URL', () => {
  fc.assert(
    fc.property(textArb, (text) => {
      const address = parseAddress(text)
      assert.equal(address !== undefined, isIP(text) !== 0 && !text.includes('%'), text)
      if (address === undefined) return
      const formatted = formatAddress(address.family, address.octets)
      // A URL keeps IPv4-mapped addresses as IPv6; here they are IPv4.
      const expected = byUrl(text)
      const unmapped =
        address.family === 4 && text.includes(':') ? `::ffff:${formatted}` : formatted
      assert.equal(byUrl(unmapped), expected, text)
      if (!text.includes(':') || address.family === 6) assert.equal(formatted, expected, text)
      assert.deepEqual(mkAddress(formatted), address, 'reads its own text')
    }),
    { numRuns: 10_000 },
  )
})

test('parsePrefix reads prefixes, and reports what it found instead', () => {
  const rows: readonly (readonly [text: string, expected: string | RegExp, why: string])[] = [
    ['10.0.0.0/8', '10.0.0.0/8', 'IPv4'],
    ['0.0.0.0/0', '0.0.0.0/0', 'everything'],
    ['192.0.2.1', '192.0.2.1/32', 'a bare address'],
    ['192.0.2.1/32', '192.0.2.1/32', 'one address'],
    ['10.0.0.128/25', '10.0.0.128/25', 'not at an octet boundary'],
    ['10.1.0.0/8', /host bits must be zero: write 10\.0\.0\.0\/8/, 'host bits'],
    ['10.0.0.1/31', /write 10\.0\.0\.0\/31/, 'the last bit'],
    ['1.2.3.4/0', /write 0\.0\.0\.0\/0/, 'host bits of everything'],
    ['10.0.0.0/33', /0 to 32, found "33"/, 'too long'],
    ['10.0.0.0/', /found ""/, 'no length'],
    ['10.0.0.0/-1', /found "-1"/, 'negative'],
    ['10.0.0.0/8/8', /found "8\/8"/, 'two lengths'],
    ['10.0.0.0/255.0.0.0', /found "255\.0\.0\.0"/, 'a mask'],
    ['10.0.0.0/ 8', /found " 8"/, 'blank'],
    ['10.0.0/8', /expected an address or prefix/, 'short form'],
    ['', /expected an address or prefix/, 'nothing'],
    ['/8', /expected an address or prefix/, 'no address'],
    ['2001:db8::/32', '2001:db8::/32', 'IPv6'],
    ['::/0', '::/0', 'all of IPv6'],
    ['fd00::5', 'fd00::5/128', 'a bare IPv6 address'],
    ['2001:db8::1/64', /write 2001:db8::\/64/, 'IPv6 host bits'],
    ['2001:db8::/129', /0 to 128, found "129"/, 'IPv6 too long'],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8', 'a mapped prefix is IPv4'],
    ['::ffff:0:0/96', '0.0.0.0/0', 'all mapped addresses are all of IPv4'],
    ['::ffff:1.2.3.4', '1.2.3.4/32', 'a bare mapped address'],
    ['::ffff:10.1.0.0/104', /host bits must be zero/, 'host bits of a mapped prefix'],
    ['::ffff:10.0.0.0/8', /expected a prefix length/, 'a mapped address with an IPv4 length'],
    [
      '10.0.0.0/08',
      /leading zero.*write 10\.0\.0\.0\/8, not 10\.0\.0\.0\/08/,
      'could be meant as octal',
    ],
    ['10.0.0.0/008', /leading zero/, 'two of them'],
    ['0.0.0.0/00', /leading zero.*write 0\.0\.0\.0\/0,/, 'zero itself'],
    ['2001:db8::/032', /leading zero/, 'IPv6 as well'],
  ]
  for (const [text, expected, why] of rows) {
    const result = parsePrefix(text)
    if (typeof expected === 'string') {
      assert.equal(
        result.kind === 'ok' ? formatPrefix(result.prefix) : result.reason,
        expected,
        why,
      )
    } else {
      assert.match(
        result.kind === 'ok' ? formatPrefix(result.prefix) : result.reason,
        expected,
        why,
      )
      assert.equal(result.kind, 'bad', why)
    }
  }
})

/** Any prefix, mostly around a few addresses, so that some contain others. */
const prefixArb = fc
  .tuple(
    fc.constantFrom<Family>(4, 6),
    fc.array(fc.constantFrom(0, 1, 0x80, 0xff), { minLength: 16, maxLength: 16 }),
    fc.nat(128),
  )
  .map(([family, octets, bits]): Prefix => {
    const width = widthOf(family)
    const whole = Uint8Array.from(octets, (value, i) => (i < width / 8 ? value : 0))
    return truncatePrefix({ family, octets: whole, length: width }, bits % (width + 1))
  })

test('parsePrefix reads what formatPrefix wrote, and truncatePrefix leaves no host bits', () => {
  fc.assert(
    fc.property(prefixArb, (prefix) => {
      fc.pre(prefix.family === 4 || !isMapped(prefix.octets, 0))
      assert.deepEqual(mkPrefix(formatPrefix(prefix)), prefix)
      assert.deepEqual(truncatePrefix(prefix, prefix.length), prefix)
    }),
    { numRuns: 2_000 },
  )
})

test('containsPrefix agrees with BlockList of node:net', () => {
  fc.assert(
    fc.property(prefixArb, prefixArb, (outer, inner) => {
      fc.pre(outer.length > 0 && !isMapped(inner.octets, 0) && !isMapped(outer.octets, 0))
      const list = new BlockList()
      list.addSubnet(formatAddress(outer.family, outer.octets), outer.length, `ipv${outer.family}`)
      const has = list.check(formatAddress(inner.family, inner.octets), `ipv${inner.family}`)
      const expected = outer.family === inner.family && outer.length <= inner.length && has
      assert.equal(
        containsPrefix(outer, inner),
        expected,
        `${formatPrefix(outer)} ${formatPrefix(inner)}`,
      )
    }),
    { numRuns: 5_000 },
  )
})

test('containsPrefix decides about equal, inside, beside and the other family', () => {
  const rows: readonly (readonly [outer: string, inner: string, expected: boolean, why: string])[] =
    [
      ['10.0.0.0/8', '10.0.0.0/8', true, 'equal'],
      ['10.0.0.0/8', '10.1.0.0/16', true, 'inside'],
      ['10.1.0.0/16', '10.0.0.0/8', false, 'around'],
      ['10.0.0.0/9', '10.128.0.0/9', false, 'beside, differs in the last bit'],
      ['0.0.0.0/0', '255.255.255.255/32', true, 'everything'],
      ['0.0.0.0/0', '::/0', false, 'the other family'],
      ['::/0', '1.2.3.4/32', false, 'the other family'],
      ['2001:db8::/33', '2001:db8:8000::/33', false, 'IPv6 beside'],
      ['2001:db8::/32', '2001:db8:8000::/33', true, 'IPv6 inside'],
    ]
  for (const [outer, inner, expected, why] of rows) {
    assert.equal(containsPrefix(mkPrefix(outer), mkPrefix(inner)), expected, why)
  }
})

test('commonBits counts shared leading bits up to its limit, at any offsets', () => {
  const bitsOf = (octets: Uint8Array) =>
    Array.from(octets, (value) => value.toString(2).padStart(8, '0')).join('')
  const sixteen = fc.uint8Array({ minLength: 16, maxLength: 16 })
  fc.assert(
    fc.property(sixteen, fc.nat(127), fc.nat(128), fc.nat(3), (a, flip, limit, shift) => {
      const b = new Uint8Array(16 + shift)
      b.set(a, shift)
      b[shift + (flip >> 3)]! ^= 0x80 >> (flip & 7)
      const [left, right] = [bitsOf(a), bitsOf(b.subarray(shift))]
      let expected = 0
      while (expected < limit && left[expected] === right[expected]) expected++
      assert.equal(commonBits(a, 0, b, shift, limit), expected)
    }),
    { numRuns: 2_000 },
  )
})

test('isMapped looks at the first 96 bits at an offset', () => {
  const mapped = Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 2, 3, 4])
  assert.ok(isMapped(mapped, 0))
  assert.ok(isMapped(Uint8Array.from([7, 7, ...mapped]), 2))
  for (let i = 0; i < 12; i++) {
    const other = mapped.slice()
    other[i]! ^= 1
    assert.ok(!isMapped(other, 0), `octet ${i} differs`)
  }
})
