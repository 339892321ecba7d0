import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashOctets } from '../../src/core/tables/keyed-hash.ts'
import { AnswerView } from '../../src/dns/answer.ts'
import {
  a,
  A,
  cname,
  concat,
  mkAnswer,
  mkMessage,
  ANSWER_FLAGS,
  wireName,
  type MkRecord,
} from '../support/messages.ts'
import { Random } from '../support/models/random.ts'

const SEED = 77
const www = 'www.example'

function teaches(
  message: Uint8Array,
  name: string,
): { count: number; links: number; fault: string } {
  const view = new AnswerView()
  const wire = wireName(name)
  const question = { name: wire, nameLength: wire.length, qtype: A, qclass: 1 }
  assert.equal(view.read(message, 0, message.length, question), 'ok')
  return { count: view.count, links: view.links, fault: view.chainFault }
}

/** Two names with one hash. By the birthday bound this needs about 80,000 tries. */
function collidingNames(): readonly [string, string] {
  const random = new Random(SEED)
  const seen = new Map<number, string>()
  const wire = new Uint8Array(10).fill(8, 0, 1)
  for (let i = 0; i < 1_000_000; i++) {
    for (let j = 1; j < 9; j++) wire[j] = 0x61 + random.below(26)
    const name = String.fromCharCode(...wire.subarray(1, 9))
    const hash = hashOctets(wire, 0, wire.length)
    const other = seen.get(hash)
    if (other !== undefined && other !== name) return [other, name]
    seen.set(hash, name)
  }
  throw new Error('no two names collide')
}

test('Chain keeps names with equal hashes apart', () => {
  const [first, second] = collidingNames()
  assert.deepEqual(teaches(mkAnswer(first, A, [a(second, '192.0.2.1')]), first), {
    count: 0,
    links: 0,
    fault: 'none',
  })
  const linked = mkAnswer(first, A, [cname(second, 'x.example'), a('x.example', '192.0.2.1')])
  assert.deepEqual(teaches(linked, first), { count: 0, links: 0, fault: 'none' })
})

/** An answer whose CNAME target is `behind` octets after offset 0x4000, which no pointer reaches. */
function farTarget(behind: number, owner: { readonly raw: Uint8Array }): Uint8Array {
  const foreign: MkRecord = { owner: 'foreign', type: 16, data: new Uint8Array(0) }
  const link = cname(www, { raw: wireName('x.example') }, 50)
  const pad = (size: number): Uint8Array =>
    mkMessage({
      flags: ANSWER_FLAGS,
      questions: [{ name: www }],
      answers: [
        foreign,
        { owner: '', type: 16, data: new Uint8Array(size) },
        link,
        a(owner, '192.0.2.1'),
      ],
    })
  const target = (message: Uint8Array) =>
    Buffer.from(message).indexOf(Buffer.from(wireName('x.example')))
  return pad(0x4000 + behind - target(pad(0)))
}

test('Chain accepts no pointer as the target of a link beyond the reach of pointers', () => {
  // The owner 'foreign' is at octet 29, and 0x4000 + 29 would look like a pointer to it.
  const pointer = { raw: Uint8Array.of(0xc0, 29) }
  assert.deepEqual(teaches(farTarget(29, pointer), www), { count: 0, links: 1, fault: 'none' })
  const spelled = { raw: wireName('other.example') }
  assert.deepEqual(teaches(farTarget(29, spelled), www), { count: 0, links: 1, fault: 'none' })
  const right = { raw: wireName('x.example') }
  assert.deepEqual(teaches(farTarget(29, right), www), { count: 1, links: 1, fault: 'none' })
})

test('Chain follows links in any form of their names', () => {
  const spelled = (name: string) => ({ raw: wireName(name) })
  const tail = { raw: concat(Uint8Array.of(1, 0x78), Uint8Array.of(0xc0, 16)) } // x + .example
  for (const owner of [www, spelled(www), spelled('WWW.example')]) {
    for (const target of ['x.example', spelled('x.example'), tail]) {
      const answers = [
        a('x.example', '192.0.2.1'),
        cname(owner, target),
        a(spelled('x.example'), '192.0.2.2'),
      ]
      assert.deepEqual(teaches(mkAnswer(www, A, answers), www), {
        count: 2,
        links: 1,
        fault: 'none',
      })
    }
  }
})
