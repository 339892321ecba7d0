import assert from 'node:assert/strict'
import { test } from 'node:test'
import dnsPacket from 'dns-packet'
import fc from 'fast-check'
import { formatName, lower, NAME_OCTETS_MAX, nameLength, parseName } from '../../src/core/name.ts'

/** Wire octets of labels given one by one as Latin-1 text. */
function mkWire(...labels: readonly string[]): Uint8Array {
  const parts = labels.map((label) => [label.length, ...Buffer.from(label, 'latin1')])
  return Uint8Array.from([...parts.flat(), 0])
}

function parsed(text: string): Uint8Array {
  const result = parseName(text)
  return result.kind === 'ok' ? result.name : assert.fail(`${text}: ${result.reason}`)
}

const L63 = 'a'.repeat(63)

test('parseName reads a name as a person writes it', () => {
  const rows: readonly (readonly [text: string, wire: Uint8Array, why: string])[] = [
    ['a.b', mkWire('a', 'b'), 'labels'],
    ['a.b.', mkWire('a', 'b'), 'a final dot changes nothing'],
    ['WwW.Example', mkWire('www', 'example'), 'ASCII letters in lower case (RFC 4343)'],
    ['.', mkWire(), 'the root'],
    ['', mkWire(), 'nothing is the root'],
    ['_sip._tcp.x-1', mkWire('_sip', '_tcp', 'x-1'), 'underscore, hyphen and digits'],
    ['a\\046b.c', mkWire('a.b', 'c'), 'an escaped dot is inside its label (A9)'],
    ['a\\.b.c', mkWire('a.b', 'c'), 'the short form of the same (RFC 1035 5.1)'],
    ['a\\\\b', mkWire('a\\b'), 'an escaped backslash'],
    ['\\000.\\255', mkWire('\0', '\xff'), 'any octet'],
    ['\\065', mkWire('a'), 'an escaped capital letter is a letter'],
    ['\\046', mkWire('.'), 'a label that is a dot'],
    ['a\\032b', mkWire('a b'), 'an escaped blank'],
    ['a*b!', mkWire('a*b!'), 'printable octets stand for themselves'],
    [`${L63}.b`, mkWire(L63, 'b'), 'longest label'],
    [
      `${L63}.${L63}.${L63}.${'a'.repeat(61)}`,
      mkWire(L63, L63, L63, 'a'.repeat(61)),
      'longest name, 255 octets',
    ],
    ['a.'.repeat(127), mkWire(...Array.from({ length: 127 }, () => 'a')), 'most labels'],
  ]
  for (const [text, wire, why] of rows) assert.deepEqual(parsed(text), wire, `${text}: ${why}`)
})

test('parseName refuses what is not a name and says why', () => {
  const rows: readonly (readonly [text: string, reason: RegExp, why: string])[] = [
    ['a..b', /empty label/, 'two dots'],
    ['..', /empty label/, 'two dots alone'],
    ['.a', /empty label/, 'a dot in front'],
    ['a..', /empty label/, 'two final dots'],
    [`${L63}a.b`, /longer than 63/, 'label of 64 octets'],
    [`b.${L63}a`, /longer than 63/, 'last label of 64 octets'],
    [`${L63}.${L63}.${L63}.${'a'.repeat(62)}`, /longer than 255/, '256 octets'],
    ['a.'.repeat(128), /longer than 255/, '128 labels'],
    ['a\\', /bad escape/, 'a backslash at the end'],
    ['a\\1', /bad escape/, 'one digit'],
    ['a\\12.b', /bad escape/, 'two digits'],
    ['a\\256', /bad escape/, 'not an octet'],
    ['a\\é', /bad escape/, 'a character that is not one octet behind a backslash'],
    ['a b', /must be written/, 'a blank'],
    ['a\tb', /must be written/, 'a tab'],
    ['é', /must be written/, 'not ASCII: octets cannot be guessed from a character'],
    ['a\u007f', /must be written/, 'DEL'],
    ['a\\\n', /bad escape/, 'a line feed behind a backslash'],
  ]
  for (const [text, reason, why] of rows) {
    const result = parseName(text)
    assert.ok(result.kind === 'bad', `${JSON.stringify(text)} is no name: ${why}`)
    assert.match(result.reason, reason, why)
  }
})

const labelArb = fc.uint8Array({ minLength: 1, maxLength: 20 })
const wireArb = fc.array(labelArb, { maxLength: 10 }).map((labels) => {
  return Uint8Array.from([...labels.flatMap((label) => [label.length, ...label.map(lower)]), 0])
})

test('parseName reads what formatName wrote, for any octets', () => {
  fc.assert(
    fc.property(wireArb, (wire) => {
      const text = formatName(wire)
      assert.match(text, /^(?:[A-Za-z0-9_.-]|\\\d{3})*$/, 'only plain characters and \\DDD')
      assert.deepEqual(parsed(text), wire)
    }),
    { numRuns: 2_000 },
  )
})

test('parseName returns for any text a name of at most 255 octets or a reason', () => {
  const unit = fc.constantFrom('a', 'B', '.', '\\', '0', '4', '6', ' ', 'é', '-', '*')
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 40 }), (text) => {
      const result = parseName(text)
      if (result.kind === 'bad') return
      assert.ok(result.name.length <= NAME_OCTETS_MAX)
      assert.equal(nameLength(result.name), result.name.length, 'well formed to the end')
      assert.deepEqual(parsed(formatName(result.name)), result.name)
    }),
    { numRuns: 3_000 },
  )
})

test('parseName makes the same octets of a plain name as dns-packet', () => {
  const label = fc.string({
    unit: fc.constantFrom(...Array.from('abcxyz019-_')),
    minLength: 1,
    maxLength: 12,
  })
  fc.assert(
    fc.property(fc.array(label, { minLength: 1, maxLength: 8 }), (labels) => {
      const text = labels.join('.')
      const question = dnsPacket.encode({ type: 'query', questions: [{ type: 'A', name: text }] })
      assert.deepEqual(parsed(text), Uint8Array.from(question.subarray(12, question.length - 4)))
    }),
  )
})

test('formatName writes every octet outside of A-Z a-z 0-9 - _ as three digits', () => {
  const rows: readonly (readonly [wire: Uint8Array, text: string, why: string])[] = [
    [mkWire(), '.', 'the root'],
    [mkWire('a', 'b'), 'a.b', 'no final dot'],
    [mkWire('a.b', 'c'), 'a\\046b.c', 'a dot in a label is no boundary'],
    [mkWire('\0', '\x09'), '\\000.\\009', 'leading zeros'],
    [mkWire('\xff\\ "'), '\\255\\092\\032\\034', 'backslash, blank and quote'],
    [mkWire('AZ-_09'), 'AZ-_09', 'case is kept'],
    [mkWire('*'), '\\042', 'a star in a name is no pattern'],
  ]
  for (const [wire, text, why] of rows) assert.equal(formatName(wire), text, why)
})

test('formatName and nameLength read a name in the middle of other octets', () => {
  const wire = Uint8Array.from([9, 9, 9, ...mkWire('a', 'bc'), 7, 7])
  assert.equal(formatName(wire, 3), 'a.bc')
  assert.equal(nameLength(wire, 3), 6)
  assert.equal(nameLength(Uint8Array.of(0)), 1, 'the root is one octet')
})

test('lower changes only ASCII letters', () => {
  for (let octet = 0; octet < 256; octet++) {
    const expected = octet < 128 ? String.fromCharCode(octet).toLowerCase().charCodeAt(0) : octet
    assert.equal(lower(octet), expected)
  }
})
