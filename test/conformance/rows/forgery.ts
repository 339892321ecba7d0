// docs/spec/correctness 2, A1-A6: forged answers, and messages that end the wait where they may not.

import assert from 'node:assert/strict'
import { assertSame, rcodeOf, SERVFAIL, withId } from '../lab/replies.ts'
import { answerTo, type AskedQuery } from '../lab/upstream.ts'
import { ATTEMPTS, SELECTOR, type World } from '../lab/world.ts'
import { ask, own } from './build.ts'
import type { Row } from './row.ts'
import { a, ANSWER_FLAGS, mkMessage } from '../../support/messages.ts'

const FALSE_ADDRESS = '198.19.66.7'
const LATER_MS = 50
const ALL_IDS = 1
/** In the modes that differ in nothing towards the server. */
const SOME_IDS = 32

/** What comes before the true answer, over both transports. */
const JUNK: readonly (readonly [what: string, make: (asked: AskedQuery) => Uint8Array])[] = [
  ['nothing at all', () => new Uint8Array(0)],
  ['one octet', (asked) => withId(answerTo(asked), asked.id).subarray(0, 1)],
  ['the id alone', (asked) => withId(answerTo(asked), asked.id).subarray(0, 2)],
  ['11 octets', (asked) => withId(answerTo(asked), asked.id).subarray(0, 11)],
  ['half a question', (asked) => withId(answerTo(asked), asked.id).subarray(0, 15)],
  ['the query itself, QR=0', (asked) => asked.octets],
  ['another opcode', (asked) => answerTo(asked, { flags: ANSWER_FLAGS | 0x2000 })],
  ['no question', (asked) => answerTo(asked, { questions: [] })],
  ['two questions', (asked) => answerTo(asked, { questions: [asked.question, asked.question] })],
  ['another name', (asked) => answerTo(asked, { questions: [{ name: 'other.ok.test' }] })],
  [
    'a question that points to itself',
    (asked) => answerTo(asked, { questions: [{ name: { raw: Uint8Array.of(0xc0, 12) } }] }),
  ],
  [
    'TC under another id',
    (asked) => answerTo(asked, { id: asked.id ^ 1, flags: ANSWER_FLAGS | 0x0200 }),
  ],
]

export const FORGERY: readonly Row[] = [
  {
    kind: 'script',
    id: 'A1',
    what: 'a flood of forged answers to a query whose port is known: none is taken, the true one comes',
    note: 'all 65,536 ids in explicit mode if they fit into the time of a query, every 32nd in the others, which ask servers the same way',
    run: async (world) => {
      const step = world.mode === 'explicit' ? ALL_IDS : SOME_IDS
      await flooded(world, step, 'address')
      await flooded(world, step, 'ids')
      await flooded(world, step, 'name')
    },
  },
  {
    kind: 'tests',
    id: 'A2',
    what: 'a socket is renewed after 10,000 queries or 60 s, and drawn at random for whoever asks',
    tests: [
      [
        'test/proxy/upstream/upstream.test.ts',
        'Upstream renews a socket after its queries and after its age',
      ],
      ['test/proxy/upstream/upstream.test.ts', 'Upstream draws the socket at random'],
    ],
  },
  {
    kind: 'script',
    id: 'A3',
    what: 'every socket towards the server is connected to it',
    run: async (world) => {
      await world.ask('udp', mkMessage(ask(world.name())))
      const { stdout } = await world.lab.node.run('ss', ['-Huan'])
      const sockets = stdout.split('\n').map((line) => line.trim().split(/\s+/))
      const towards = sockets.filter(([, , , local]) => local?.startsWith('192.0.2.1:'))
      assert.ok(towards.length > 0, stdout)
      for (const [, , , , peer] of towards) assert.equal(peer, '192.0.2.53:53')
    },
  },
  {
    kind: 'exchange',
    id: 'A4',
    what: 'after another id over UDP the query is asked over TCP, once, and that answer counts',
    query: (name) => ask(name),
    answer: (asking) =>
      asking.transport === 'udp' ? [withId(own(asking), asking.id ^ 0xff)] : [own(asking)],
    over: ['udp'],
    allowed: ({ got, asked, query }) => {
      const overTcp = asked.filter(({ transport }) => transport === 'tcp')
      assert.equal(overTcp.length, 1)
      assert.equal(Buffer.from(got).readUInt16BE(0), query.id)
    },
    teaches: true,
  },
  ...JUNK.map(([what, make]): Row => ({
    kind: 'script',
    id: 'A5',
    what: `${what} does not end the wait for the true answer`,
    run: async (world) => await junkThenTrue(world, make),
  })),
  ...(['name', 'type', 'class'] as const).map((part): Row => ({
    kind: 'exchange',
    id: 'A6',
    what: `the answer to another question (${part}) is not taken`,
    query: (name) => ask(name),
    answer: (asking) => {
      const { question } = asking
      const other = {
        name: { ...question, name: 'wrong.ok.test' },
        type: { ...question, type: 16 },
        class: { ...question, class: 4 },
      }
      const wrong = answerTo(asking, {
        questions: [other[part]],
        answers: [a(other[part].name, FALSE_ADDRESS)],
      })
      return [wrong, own(asking)]
    },
    allowed: ({ got, answered, query }) => {
      const wanted = answered.map((each) => withId(each, query.id ?? 0).toString('hex'))
      const rights = wanted.filter((_, i) => i % 2 === 1)
      assert.ok(rights.includes(Buffer.from(got).toString('hex')), 'the true one')
    },
    teaches: true,
  })),
]

async function flooded(
  world: World,
  step: number,
  what: 'address' | 'ids' | 'name',
): Promise<void> {
  const name = world.name()
  const address = world.address()
  world.upstream.on(name, () => undefined)
  const client = await world.udp()
  client.send(mkMessage(ask(name, { id: 3 })))
  const asked = await world.upstream.asked(name).at(0)
  const answers = [a(asked.question.name, FALSE_ADDRESS)]
  if (what === 'name') {
    const questions = [{ ...asked.question, name: 'forged.ok.test' }]
    asked.send(answerTo(asked, { questions, answers }))
  } else {
    const from = what === 'address' ? 'address' : 'none'
    await world.upstream.flood(answerTo(asked, { answers }), asked.port, from, step)
  }
  const right = { answers: [a(asked.question.name, address)] }
  world.upstream.on(name, (each) => each.send(answerTo(each, right)))
  for (const each of world.upstream.asked(name).items) each.send(answerTo(each, right))
  const { octets } = await client.inbox.at(0)
  client.close()
  if (rcodeOf(octets) === SERVFAIL) {
    // On a busy machine the flood takes longer than a query may: less of it then.
    assert.ok(step < SOME_IDS * 16, 'a query outlasts a short flood')
    return await flooded(world, step * 4, what)
  }
  assertSame(octets, withId(answerTo(asked, right), 3), 'the true answer')
  assert.deepEqual(await world.labelsOf(FALSE_ADDRESS), [])
  assert.deepEqual(await world.labelsOf(address), [`fqdn:${SELECTOR}`])
  const count = world.upstream.asked(name).items.length
  assert.ok(count <= ATTEMPTS + 1, `asked ${count} times`)
}

async function junkThenTrue(world: World, make: (asked: AskedQuery) => Uint8Array): Promise<void> {
  for (const transport of ['udp', 'tcp'] as const) {
    const name = world.name()
    const address = world.address()
    world.upstream.on(name, (asked) => {
      // What is asked over TCP because of the junk stays without an answer.
      if (asked.transport !== transport) return
      asked.send(make(asked))
      const right = answerTo(asked, { answers: [a(asked.question.name, address)] })
      setTimeout(() => asked.send(right), LATER_MS)
    })
    const got = await world.ask(transport, mkMessage(ask(name, { id: 8 })))
    const [asked] = world.upstream.asked(name).items
    assert.ok(asked)
    const right = answerTo(asked, { answers: [a(asked.question.name, address)] })
    assertSame(got, withId(right, 8), `the true answer over ${transport}`)
  }
}
