import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AnswerView } from '../../src/dns/answer.ts'
import { MessageView } from '../../src/dns/message-view.ts'
import { questionEchoes, questionEquals } from '../../src/dns/match.ts'
import { guard } from '../support/guarded.ts'
import { a, A, AAAA, ANSWER_FLAGS, mkAnswer, mkMessage, wireName } from '../support/messages.ts'
import {
  mutateField,
  mutateOctets,
  randomAnswer,
  randomQuestion,
} from '../support/models/mutate.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'

const www = 'www.example'
const name = wireName(www)
const question = { name, nameLength: name.length, qtype: A, qclass: 1 }
const records = [a(www, '192.0.2.1')]

const rows: readonly (readonly [reason: string, message: Uint8Array, equal: boolean])[] = [
  ['the question as asked', mkAnswer(www, A, records), true],
  ['A15: in another case', mkAnswer('wWw.EXAMPLE', A, records), true],
  ['any RCODE', mkAnswer(www, A, [], { flags: ANSWER_FLAGS | 2 }), true],
  ['P4: TC=1', mkAnswer(www, A, [], { flags: ANSWER_FLAGS | 0x0200 }), true],
  ['A6: another name', mkAnswer('wwx.example', A, records), false],
  ['A6: a longer name', mkAnswer('www.example.com', A, records), false],
  ['A6: a shorter name', mkAnswer('www', A, records), false],
  ['A9: the same text in other labels', mkAnswer(['www.example'], A, records), false],
  ['A6: another type', mkAnswer(www, AAAA, records), false],
  [
    'A6: another class',
    mkMessage({ flags: ANSWER_FLAGS, questions: [{ name: www, class: 3 }] }),
    false,
  ],
  ['A5: QR=0', mkAnswer(www, A, records, { flags: 0x0100 }), false],
  ['A5: another opcode', mkAnswer(www, A, records, { flags: ANSWER_FLAGS | 0x0800 }), false],
  [
    'A5: two questions',
    mkMessage({ flags: ANSWER_FLAGS, questions: [{ name: www }, { name: www }] }),
    false,
  ],
  ['A5: a bad pointer for a name', mkAnswer({ raw: Uint8Array.of(0xc0, 12) }, A, []), false],
  ['Q3: no question, NOERROR', mkMessage({ flags: ANSWER_FLAGS }), false],
  ['Q3: no question, NXDOMAIN', mkMessage({ flags: ANSWER_FLAGS | 3 }), false],
  ...[1, 2, 4, 5, 15].map(
    (rcode) =>
      [
        `Q3: no question, RCODE ${rcode}`,
        mkMessage({ flags: ANSWER_FLAGS | rcode }),
        true,
      ] as const,
  ),
]

test('questionEquals accepts the reply to the question and nothing else', () => {
  for (const [reason, octets, equal] of rows) {
    const { buf, offset, length, outside } = guard(octets)
    const message = new MessageView().set(buf, offset, length)
    assert.equal(questionEquals(message, question), equal, reason)
    assert.deepEqual(outside, [], reason)
  }
})

test('questionEchoes accepts nothing that questionEquals refuses, and every echo in the same case', () => {
  const query = MessageView.of(mkMessage({ questions: [{ name: www }] }))
  const end = query.length
  for (const [reason, message, equal] of rows) {
    const { buf, offset, length, outside } = guard(message)
    const echoes = questionEchoes(new MessageView().set(buf, offset, length), query, end)
    assert.ok(equal || !echoes, reason)
    assert.deepEqual(outside, [], reason)
  }
  const octets = mkAnswer(www, A, records)
  const message = MessageView.of(octets)
  assert.equal(questionEchoes(message, query, end), true)
  for (let length = 0; length < end; length++) {
    message.set(octets, 0, length)
    assert.equal(questionEchoes(message, query, end), false, `${length} octets`)
  }
})

test('questionEquals: A19: refuses every prefix that lacks a part of the question', () => {
  const message = mkAnswer(www, A, [])
  for (let length = 0; length < message.length; length++) {
    const prefix = new MessageView().set(message, 0, length)
    assert.equal(questionEquals(prefix, question), false, `${length} octets`)
  }
})

test('questionEquals agrees with AnswerView for damaged messages that can be read', () => {
  const random = new Random(11)
  const view = new AnswerView()
  const seen = { equal: 0, other: 0 }
  for (let i = 0; i < runsOf(5000); i++) {
    const asked = randomQuestion(random)
    const laid = randomAnswer(random, asked)
    const message = random.oneIn(2) ? mutateField(random, laid) : mutateOctets(random, laid.octets)
    const wire = wireName(asked.labels)
    const own = { name: wire, nameLength: wire.length, qtype: asked.type, qclass: asked.class }
    if (view.read(message, 0, message.length, own) === 'malformed' || view.qdcount === 0) continue
    const reply = (view.flags & 0xf800) === 0x8000
    const equal = view.questionMatches && reply
    assert.equal(
      questionEquals(MessageView.of(message), own),
      equal,
      Buffer.from(message).toString('hex'),
    )
    seen[equal ? 'equal' : 'other']++
  }
  assert.ok(seen.equal > 500 && seen.other > 100, JSON.stringify(seen))
})

test('questionEquals never reads outside the message', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40, size: 'max' }), (octets) => {
      const { buf, offset, length, outside } = guard(octets)
      questionEquals(new MessageView().set(buf, offset, length), question)
      assert.deepEqual(outside, [])
    }),
  )
})
