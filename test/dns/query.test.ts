import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as packet from 'dns-packet'
import { parseName } from '../../src/core/name.ts'
import { hashOctets } from '../../src/core/tables/keyed-hash.ts'
import { QueryView, type QueryStatus } from '../../src/dns/query.ts'
import { guard } from '../support/guarded.ts'
import {
  A,
  AAAA,
  mkMessage,
  mkQuery,
  opt,
  option,
  QUERY_FLAGS,
  wireName,
} from '../support/messages.ts'
import { mutateOctets } from '../support/models/mutate.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'
import { readQuery, cookie, withOpt, raw } from '../support/queries.ts'

test('QueryView.read: A19: every prefix of a query is silence or FORMERR', () => {
  const message = withOpt({ options: cookie(8) })
  for (let length = 0; length < message.length; length++) {
    const { status } = readQuery(message.subarray(0, length))
    assert.equal(status, length < 12 ? 'silent' : 'formerr', `${length} octets`)
  }
})

test('QueryView.read returns the whole question', () => {
  const { status, view } = readQuery(
    mkQuery(['WWW', 'Ex-am_ple9'], AAAA, {
      id: 0xfedc,
      flags: 0x0130,
      additionals: [opt({ udpSize: 4096, flags: 0x8000 })],
    }),
  )
  const name = wireName('www.ex-am_ple9')
  assert.equal(status, 'ok')
  const { id, flags, rd, cd, ad, nameLength, nameHash, nameFits, labelCount, qtype, qclass } = view
  assert.deepEqual(
    { id, flags, rd, cd, ad, nameLength, nameHash, nameFits, labelCount, qtype, qclass },
    {
      id: 0xfedc,
      flags: 0x0130,
      rd: true,
      cd: true,
      ad: true,
      nameLength: name.length,
      nameHash: hashOctets(name, 0, name.length),
      nameFits: true,
      labelCount: 2,
      qtype: AAAA,
      qclass: 1,
    },
  )
  assert.deepEqual(view.name.subarray(0, nameLength), name)
  const { questionEnd, hasOpt, udpSize, ednsVersion, dnssecOk } = view
  assert.deepEqual(
    { questionEnd, hasOpt, udpSize, ednsVersion, dnssecOk },
    {
      questionEnd: 12 + name.length + 4,
      hasOpt: true,
      udpSize: 4096,
      ednsVersion: 0,
      dnssecOk: true,
    },
  )
})

/** Every public field except the octets of the name. */
function fields(view: QueryView): readonly (readonly [string, unknown])[] {
  return Object.entries(view).filter(([key]) => key !== 'name')
}

test('QueryView.read drops the query before', () => {
  const view = new QueryView()
  const first = withOpt({ udpSize: 4096, flags: 0x8000 })
  view.read(first, 0, first.length)
  const second = mkMessage({ flags: 0x7800 })
  assert.equal(view.read(second, 0, second.length), 'notimp')
  const fresh = new QueryView()
  fresh.read(second, 0, second.length)
  assert.deepEqual(fields(view), fields(fresh))
})

test('QueryView.read: E7: a UDP size below 512 is 512, and so is none', () => {
  for (const [size, want] of [
    [0, 512],
    [511, 512],
    [512, 512],
    [513, 513],
    [65535, 65535],
  ] as const) {
    assert.equal(readQuery(withOpt({ udpSize: size })).view.udpSize, want)
  }
  assert.equal(readQuery(mkQuery('x')).view.udpSize, 512)
})

test('QueryView.read: E8: finds OPT also in a malformed query', () => {
  const rows: readonly (readonly [reason: string, message: Uint8Array])[] = [
    ['malformed option', withOpt({ options: option(1, new Uint8Array(0), 9) })],
    ['RDLENGTH of OPT past the end', withOpt({ rdlength: 50 })],
    ['octets behind', withOpt({}, { trailing: Uint8Array.of(7) })],
    ['two questions', withOpt({}, { questions: [{ name: 'a' }, { name: 'b' }] })],
    ['owner not the root', withOpt({ owner: 'x' })],
  ]
  for (const [reason, message] of rows) {
    const { status, view } = readQuery(message)
    assert.deepEqual([status, view.hasOpt], ['formerr', true], reason)
  }
})

test('QueryView.read keeps the question of a malformed query only if exactly one can be read', () => {
  assert.equal(readQuery(mkQuery('x', A, { trailing: Uint8Array.of(0) })).view.questionEnd, 19)
  assert.equal(
    readQuery(mkMessage({ questions: [{ name: 'a' }, { name: 'b' }] })).view.questionEnd,
    0,
  )
  assert.equal(readQuery(mkQuery(raw(0xc0, 12))).view.questionEnd, 0)
  assert.equal(readQuery(mkQuery('x').subarray(0, -1)).view.questionEnd, 0)
  assert.equal(readQuery(mkMessage({ flags: QUERY_FLAGS })).view.questionEnd, 0)
})

test('QueryView.read: A9: only names of a-z 0-9 - _ fit patterns', () => {
  assert.equal(readQuery(mkQuery('')).view.nameFits, true)
  for (const octet of Array.from({ length: 256 }, (_, i) => i)) {
    const { status, view } = readQuery(mkQuery(['a', String.fromCharCode(0x62, octet), 'c']))
    const fits = /^[A-Za-z0-9_-]$/.test(String.fromCharCode(octet))
    assert.deepEqual([status, view.nameFits, view.labelCount], ['ok', fits, 3], `octet ${octet}`)
  }
})

test('QueryView.read: A9: a dot inside a label does not end it', () => {
  const two = readQuery(mkQuery(['a.b', 'com'])).view
  const three = readQuery(mkQuery(['a', 'b', 'com'])).view
  assert.deepEqual([two.labelCount, three.labelCount], [2, 3])
  assert.notDeepEqual(two.name, three.name)
  assert.equal(two.nameFits, false)
})

test('QueryView.read agrees with dns-packet on queries that it encodes', () => {
  const label = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/)
  const types: packet.RecordType[] = ['A', 'AAAA', 'TXT', 'SRV', 'NS']
  fc.assert(
    fc.property(
      fc.array(label, { minLength: 1, maxLength: 6 }),
      fc.constantFrom(...types),
      fc.nat(0xffff),
      fc.boolean(),
      (labels, type, id, edns) => {
        const opt: packet.OptAnswer = {
          type: 'OPT',
          name: '.',
          udpPayloadSize: 1400,
          extendedRcode: 0,
          ednsVersion: 0,
          flags: 0,
          flag_do: false,
          options: [],
        }
        const octets = packet.encode({
          type: 'query',
          id,
          flags: packet.RECURSION_DESIRED,
          questions: [{ type, name: labels.join('.') }],
          additionals: edns ? [opt] : [],
        })
        const { status, view } = readQuery(octets)
        const name = parseName(labels.join('.'))
        assert.equal(status, 'ok')
        assert.deepEqual(
          [view.id, view.hasOpt, view.udpSize, view.rd],
          [id, edns, edns ? 1400 : 512, true],
        )
        assert.deepEqual(name.kind === 'ok' && name.name, view.name.slice(0, view.nameLength))
      },
    ),
  )
})

test('QueryView.read never reads outside the message nor throws, for 3,000 damaged queries', () => {
  const random = new Random(7)
  const view = new QueryView()
  const seen = new Set<QueryStatus>()
  for (let i = 0; i < runsOf(3000); i++) {
    const message = mutateOctets(
      random,
      random.oneIn(2) ? withOpt({ options: cookie(8) }) : mkQuery('a.b.example'),
    )
    const { buf, offset, length, outside } = guard(message)
    seen.add(view.read(buf, offset, length))
    assert.deepEqual(outside, [], Buffer.from(message).toString('hex'))
  }
  assert.deepEqual([...seen].sort(), ['badvers', 'formerr', 'notimp', 'ok', 'silent'])
})
