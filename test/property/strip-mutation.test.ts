// 20,000 answers, some with one changed field, some damaged at random. AnswerStrip leaves the same of a message as a model that parses it,
// and reads no octet outside the message. WIRE_SEED replays a run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AnswerStrip } from '../../src/dns/answer-strip.ts'
import {
  mutateField,
  mutateOctets,
  randomAnswer,
  randomQuestion,
} from '../support/models/mutate.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'
import { partsOf, stripped, type Parts } from '../support/models/strip-model.ts'

const MESSAGES = runsOf(20_000)
const SEED = Number(process.env['WIRE_SEED'] ?? 20_260_902)

/** Half of the addresses that randomAnswer uses. */
const UNWANTED = {
  isUnwanted: (family: number, octets: Uint8Array, offset: number) =>
    ((octets[offset + (family === 4 ? 3 : 15)] ?? 0) & 1) === 1,
}
const NOTHING = { isUnwanted: () => false }

/** For the comparison: each RDATA once, without empty parts. */
function plain(parts: Parts | undefined): unknown {
  return parts?.records.map((record) => {
    const { section, owner, type, ttl, data } = record
    return [section, owner, type, record.class, ttl, data.filter((part) => part !== '')]
  })
}

test('AnswerStrip.strip leaves what the model leaves, for 20,000 mutated answers', () => {
  const strip = new AnswerStrip()
  const again = new AnswerStrip()
  const random = new Random(SEED)
  const passed = { same: 0, gone: 0, bad: 0 }
  for (let number = 0; number < MESSAGES; number++) {
    const laid = randomAnswer(random, randomQuestion(random))
    const message =
      number % 3 === 0
        ? laid.octets
        : number % 3 === 1
          ? mutateField(random, laid)
          : mutateOctets(random, laid.octets)
    const slab = new Uint8Array(message.length + 64).fill(number)
    slab.set(message, 32)
    const isEach = random.oneIn(2)
    const filter = random.oneIn(3) ? NOTHING : UNWANTED
    const result = strip.strip(slab, 32, message.length, isEach, filter)
    const replay = `WIRE_SEED=${SEED}, message ${number}: ${Buffer.from(message).toString('hex')}`
    const parts = partsOf(message)
    passed[result]++
    if (parts === undefined) {
      assert.equal(result, 'bad', replay)
      continue
    }
    const want = stripped(parts, isEach, (octets) =>
      filter.isUnwanted(octets.length === 4 ? 4 : 6, octets, 0),
    )
    const isBad = want.records.some(({ isBroken }) => isBroken)
    assert.equal(result, want === parts ? 'same' : isBad ? 'bad' : 'gone', replay)
    if (result !== 'gone') continue
    const left = partsOf(strip.octets.slice(0, strip.length))
    assert.deepEqual([left?.head, left?.questions], [want.head, want.questions], replay)
    assert.deepEqual(plain(left), plain(want), replay)
    // A second strip removes nothing.
    assert.equal(again.strip(strip.octets, 0, strip.length, isEach, filter), 'same', replay)
  }
  // A generator of rubbish proves nothing.
  assert.ok(passed.gone > MESSAGES * 0.2, JSON.stringify(passed))
  assert.ok(passed.same > MESSAGES * 0.1, JSON.stringify(passed))
  assert.ok(passed.bad > MESSAGES * 0.05, JSON.stringify(passed))
})
