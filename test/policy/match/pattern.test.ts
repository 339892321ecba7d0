import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseName } from '../../../src/core/name.ts'
import {
  matches,
  parseMatchName,
  parseMatchPattern,
  parsePattern,
  type Pattern,
} from '../../../src/policy/match/pattern.ts'

function mkPattern(text: string): Pattern {
  const result = parseMatchPattern(text)
  assert.equal(result.kind, 'ok', `${text}: ${result.kind === 'bad' ? result.reason : ''}`)
  return result.kind === 'ok' ? result.pattern : assert.fail()
}

function mkName(text: string): Uint8Array {
  const result = parseName(text)
  return result.kind === 'ok' ? result.name : assert.fail(`${text}: ${result.reason}`)
}

const ROWS: readonly (readonly [
  pattern: string,
  yes: readonly string[],
  no: readonly string[],
  why: string,
])[] = [
  [
    'cilium.io',
    ['cilium.io', 'CILIUM.io.'],
    ['a.cilium.io', 'io', '.'],
    'docs/spec/semantics 1, row 1',
  ],
  [
    '*.cilium.io',
    ['www.cilium.io'],
    ['cilium.io', 'a.b.cilium.io'],
    'docs/spec/semantics 1, row 2',
  ],
  ['*cilium.io', ['cilium.io', 'xcilium.io'], ['a.cilium.io'], 'docs/spec/semantics 1, row 3'],
  [
    '*.ci*.io',
    ['x.cilium.io', 'x.ci.io'],
    ['cilium.io', 'a.b.ci.io'],
    'docs/spec/semantics 1, row 4',
  ],
  [
    '**.cilium.io',
    ['a.cilium.io', 'a.b.c.cilium.io'],
    ['cilium.io', 'evilcilium.io'],
    'docs/spec/semantics 1, row 5',
  ],
  ['*.*.cilium.io', ['_sip._tcp.cilium.io'], ['a.cilium.io', 'a.b.c.cilium.io'], 'row 6'],
  [
    '*',
    ['.', 'io', 'a.b', 'a\\000b.c', '\\255', 'a\\.b.c'],
    [],
    'row 7: odd octets and the root too',
  ],
  ['**', ['.', 'a\\032b.c'], [], 'only stars'],
  ['***.', ['.', 'a\\032b.c'], [], 'only stars and a final dot'],
  ['*.', ['.', 'a.b.c'], [], 'one star and a final dot is only stars'],
  ['***.cilium.io', ['a.cilium.io', 'a.b.cilium.io'], ['cilium.io'], 'a longer run at the start'],
  ['a.**.io', ['a.b.io'], ['a.b.c.io', 'a.io'], '** elsewhere equals *'],
  ['**a.io', ['a.io', 'xa.io'], ['x.a.io'], '** not before a dot equals *'],
  ['a.**', ['a.b'], ['a', 'a.b.c'], '** at the end equals *'],
  ['**.*', ['a.b', 'a.b.c'], ['a', '.'], 'one or more labels and then one'],
  ['**.ci*.io', ['a.ci.io', 'a.b.cix.io'], ['ci.io', 'a.b.io'], 'stars behind the deep star'],
  ['a*b*c.io', ['abc.io', 'a1b2c.io', 'abbcc.io'], ['ab.io', 'abcd.io', 'xabc.io'], 'two stars'],
  ['*a*', ['a', 'xax'], ['b', 'a.a', '.'], 'stars on both sides of one label'],
  ['a-b_c.1', ['a-b_c.1', 'A-B_C.1'], ['axb_c.1'], 'hyphen, underscore and digits are plain'],
  ['*.io', ['a.io'], ['a\\000.io', 'a\\.b.io', '\\255.io', 'io'], 'odd octets never match a star'],
  ['**.io', ['a.io'], ['a\\001.b.io', 'b.a\\032.io'], 'odd octets never match below'],
  ['x.io', ['x.io'], ['x\\.io', 'x\\046io'], 'a dot inside a label is not a separator'],
]

for (const [text, yes, no, why] of ROWS) {
  test(`matches of ${text} holds: ${why}`, () => {
    const pattern = mkPattern(text)
    for (const name of yes) assert.ok(matches(pattern, mkName(name)), `${text} must match ${name}`)
    for (const name of no)
      assert.ok(!matches(pattern, mkName(name)), `${text} must not match ${name}`)
  })
}

test('matches reads from the offset and folds upper case on the wire', () => {
  const wire = Uint8Array.from([9, 9, 1, 0x41, 2, 0x49, 0x6f, 0])
  assert.ok(matches(mkPattern('*.io'), wire, 2))
  assert.ok(matches(mkPattern('a.io'), wire, 2))
  assert.ok(!matches(mkPattern('b.io'), wire, 2))
})

const CANONICAL: readonly (readonly [
  text: string,
  canonical: string,
  kind: Pattern['kind'],
  labels: readonly string[],
])[] = [
  [' Cilium.IO. ', 'cilium.io', 'exact', ['cilium', 'io']],
  ['*.Cilium.io', '*.cilium.io', 'globs', ['*', 'cilium', 'io']],
  ['***.a', '**.a', 'below', ['a']],
  ['**.a.', '**.a', 'below', ['a']],
  ['a**b.c', 'a*b.c', 'globs', ['a*b', 'c']],
  ['**a.c', '*a.c', 'globs', ['*a', 'c']],
  ['a.**.c', 'a.*.c', 'globs', ['a', '*', 'c']],
  ['**.**', '**.*', 'globs', ['**', '*']],
  ['****', '*', 'every', []],
  ['**.', '*', 'every', []],
  ['**.x*.io', '**.x*.io', 'globs', ['**', 'x*', 'io']],
]

for (const [text, canonical, kind, labels] of CANONICAL) {
  test(`parsePattern of ${JSON.stringify(text)} gives the ${kind} ${canonical}`, () => {
    assert.deepEqual(mkPattern(text), { text: canonical, kind, labels })
  })
}

const BAD: readonly (readonly [text: string, reason: string, why: string])[] = [
  ['', 'found an empty text, expected a name', 'nothing'],
  ['  ', 'found an empty text, expected a name', 'nothing after trimming'],
  ['a..b', 'found an empty label in "a..b", expected text between two dots', 'two dots'],
  ['.a', 'found an empty label in ".a", expected text between two dots', 'leading dot'],
  ['.', 'found an empty label in ".", expected text between two dots', 'the root is not a pattern'],
  ['a..', 'found an empty label in "a..", expected text between two dots', 'two final dots'],
  ['*..', 'found an empty label in "*..", expected text between two dots', 'stars and two dots'],
  ['a b', 'found the character " ", expected letters, digits, - _ . or *', 'blank inside'],
  [
    'https://example.com/a',
    'found the character ":", expected letters, digits, - _ . or *: write example.com',
    'a URL',
  ],
  [
    'https://*.example.com:8443',
    'found the character ":", expected letters, digits, - _ . or *: write *.example.com',
    'a URL with a port',
  ],
  [
    'example.com:443',
    'found the character ":", expected letters, digits, - _ . or *: write example.com',
    'a port belongs in toPorts',
  ],
  [
    'example.com/',
    'found the character "/", expected letters, digits, - _ . or *: write example.com',
    'a slash at the end',
  ],
  [
    'user@example.com',
    'found the character "@", expected letters, digits, - _ . or *',
    'the host of an address for mail is seldom what it means',
  ],
  ['[a]', 'found the character "[", expected letters, digits, - _ . or *', 'regex syntax'],
  ['a\\.b', 'found the character "\\\\", expected letters, digits, - _ . or *', 'escapes'],
  ['ä.de', 'found the character "ä", expected the ASCII form of the name (xn--…)', 'not ASCII'],
  [
    '\u212a.de',
    'found the character "\u212a", expected the ASCII form of the name (xn--…)',
    'Kelvin sign',
  ],
  [
    '😀.de',
    'found the character "😀", expected the ASCII form of the name (xn--…)',
    'a whole character is shown',
  ],
  ['a'.repeat(256), 'found 256 characters, expected at most 255', 'one too long'],
]

for (const [text, reason, why] of BAD) {
  test(`parsePattern refuses ${why}`, () => {
    assert.deepEqual(parseMatchPattern(text), { kind: 'bad', reason })
  })
}

test('parsePattern accepts 255 characters and labels longer than any name has', () => {
  assert.ok(!matches(mkPattern('a'.repeat(255)), mkName('a'.repeat(63))))
  assert.ok(matches(mkPattern(`${'*'.repeat(250)}a.io`), mkName('xa.io')), 'a long run of stars')
})

test('parseMatchName accepts no star, and otherwise returns the pattern of the same text', () => {
  assert.deepEqual(parseMatchName('*.a'), {
    kind: 'bad',
    reason: 'found a * in a matchName, expected a plain name (stars belong in matchPattern)',
  })
  assert.deepEqual(parseMatchName('A.b.'), parseMatchPattern('a.b'))
})

const label = fc.string({
  unit: fc.constantFrom('a', 'a', '_', '*', '*', '*'),
  minLength: 1,
  maxLength: 3,
})
const patternText = fc
  .tuple(fc.array(label, { minLength: 1, maxLength: 4 }), fc.boolean(), fc.boolean())
  .map(([labels, dot, upper]) => {
    const text = `${labels.join('.')}${dot ? '.' : ''}`
    return upper ? text.toUpperCase() : text
  })

test('parsePattern gives a canonical text that parses to itself', () => {
  fc.assert(
    fc.property(patternText, (text) => {
      const pattern = mkPattern(text)
      assert.deepEqual(mkPattern(pattern.text), pattern)
    }),
  )
})

test('parsePattern never throws and gives a reason for any text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.boolean(), (text, allowStar) => {
      const result = parsePattern(text, { allowStar })
      assert.ok(result.kind === 'ok' ? result.pattern.text !== '' : result.reason !== '')
    }),
  )
})

/** The meaning of docs/spec/semantics 1 as a regular expression on text, for names without odd octets. */
function secondOpinion(text: string): RegExp {
  const body = text.toLowerCase().replace(/\.$/, '')
  if (/^\*+$/.test(body)) return /^/
  const deep = /^\*\*+\.(.+)$/.exec(body)?.[1]
  const glob = (deep ?? body).replaceAll('.', '[.]').replace(/\*+/g, '[a-z0-9_-]*')
  return new RegExp(deep === undefined ? `^${glob}$` : `^([a-z0-9_-]+[.])+${glob}$`)
}

const nameText = fc
  .array(fc.string({ unit: fc.constantFrom('a', 'a', '_'), minLength: 1, maxLength: 3 }), {
    minLength: 1,
    maxLength: 5,
  })
  .map((labels) => labels.join('.'))

test('matches agrees with a regular expression built from the text', () => {
  let hits = 0
  fc.assert(
    fc.property(patternText, nameText, (text, name) => {
      const expected = secondOpinion(text).test(name)
      if (expected) hits++
      assert.equal(matches(mkPattern(text), mkName(name)), expected)
    }),
    { numRuns: 5_000 },
  )
  assert.ok(hits > 250, `only ${hits} of 5,000 cases matched`)
})
