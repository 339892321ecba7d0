// 20,000 answers: half of them with one changed field, some damaged at random, the rest well-formed. AnswerView teaches what the oracle
// teaches, and reads no octet outside the message. WIRE_SEED replays a run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatAddress } from '../../src/core/ip.ts'
import { AnswerView } from '../../src/dns/answer.ts'
import { questionEquals } from '../../src/dns/match.ts'
import { MessageView } from '../../src/dns/message-view.ts'
import type { Question } from '../../src/dns/query.ts'
import { wireName } from '../support/messages.ts'
import {
  mutateField,
  mutateOctets,
  randomAnswer,
  randomQuestion,
  type AskedQuestion,
} from '../support/models/mutate.ts'
import { oracle } from '../support/models/oracle.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'

const MESSAGES = runsOf(20_000)
const SEED = Number(process.env['WIRE_SEED'] ?? 20_260_901)

function toQuestion(asked: AskedQuestion): Question {
  const name = wireName(asked.labels)
  return { name, nameLength: name.length, qtype: asked.type, qclass: asked.class }
}

function taughtBy(view: AnswerView): Map<string, number> {
  const taught = new Map<string, number>()
  for (let i = 0; i < view.count; i++) {
    const family = view.families[i] === 4 ? 4 : 6
    taught.set(formatAddress(family, view.octets, i * 16), view.ttls[i] ?? -1)
  }
  assert.equal(taught.size, view.count, 'an address is taught once')
  return taught
}

function spoil(random: Random, number: number, laid: ReturnType<typeof randomAnswer>): Uint8Array {
  if (number % 2 === 0) return mutateField(random, laid)
  return random.oneIn(2) ? mutateOctets(random, laid.octets) : laid.octets
}

test('AnswerView teaches exactly what the oracle teaches, for 20,000 mutated answers', () => {
  const view = new AnswerView()
  const withoutHints = new AnswerView()
  withoutHints.learnsHints = false
  const random = new Random(SEED)
  const passed = { whole: 0, question: 0, taught: 0, addresses: 0, hints: 0 }
  for (let number = 0; number < MESSAGES; number++) {
    const asked = randomQuestion(random)
    const message = spoil(random, number, randomAnswer(random, asked))
    const question = toQuestion(asked)
    // Octets around the message that would complete a cut record, so that a read past the end is noticed.
    const slab = new Uint8Array(message.length + 64).fill(number)
    slab.set(message, 32)
    const want = oracle(message, asked)
    const status = view.read(slab, 32, message.length, question)
    const replay = `WIRE_SEED=${SEED}, message ${number}: ${Buffer.from(message).toString('hex')}`
    assert.equal(status, want.kind, replay)
    if (want.kind === 'malformed') {
      assert.equal(view.count, 0, replay)
      continue
    }
    passed.whole++
    assert.deepEqual(taughtBy(view), new Map(want.taught), replay)
    if (want.matches) {
      passed.question++
      const view = new MessageView().set(slab, 32, message.length)
      assert.equal(questionEquals(view, question), true, replay)
    }
    if (want.taught.size > 0) passed.taught++
    passed.addresses += want.taught.size
    withoutHints.read(slab, 32, message.length, question)
    if (withoutHints.count < want.taught.size) passed.hints++
  }
  // A generator of rubbish proves nothing.
  assert.ok(passed.whole > MESSAGES * 0.3, JSON.stringify(passed))
  assert.ok(passed.question > MESSAGES * 0.3, JSON.stringify(passed))
  assert.ok(passed.taught > MESSAGES * 0.1, JSON.stringify(passed))
  assert.ok(passed.hints > MESSAGES * 0.05, JSON.stringify(passed))
})
