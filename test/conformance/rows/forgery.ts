// docs/spec/correctness 2, A1-A6: forged answers, and messages that could end the wait too early.

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
/** The step of ids in modes that ask servers in the same way as explicit mode. */
const SOME_IDS = 32

/** Messages before the true answer, over both transports. */
const JUNK: readonly (readonly [what: string, make: (asked: AskedQuery) => Uint8Array])[] = [
  ['no octets', () => new Uint8Array(0)],
  ['one octet', (asked) => withId(answerTo(asked), asked.id).subarray(0, 1)],
  ['only the id', (asked) => withId(answerTo(asked), asked.id).subarray(0, 2)],
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
    'TC with another id',
    (asked) => answerTo(asked, { id: asked.id ^ 1, flags: ANSWER_FLAGS | 0x0200 }),
  ],
]

export const FORGERY: readonly Row[] = [
  {
    kind: 'script',
    id: 'A1',
    what: 'a flood of forged answers to a query whose port is known: none is accepted, the true one arrives',
    note: 'explicit mode tries all 65,536 ids if they fit into the time of a query; the others ask servers the same way, and try every 32nd',
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
    what: 'a socket is renewed after 10,000 queries or 60 s, and drawn at random for each query',
    tests: [
      [
        'test/proxy/upstream/upstream.test.ts',
        'Upstream renews a socket after its queries and after its age',
      ],
      ['test/proxy/upstream/upstream.test.ts', 'Upstream draws a random socket for each query'],
    ],
  },
  {
    kind: 'script',
    id: 'A3',
    what: 'every socket to the server is connected to it',
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
    what: 'after an answer with another id over UDP, the query is repeated once over TCP, and that answer counts',
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
    what: `the answer to another question (${part}) is ignored`,
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
      assert.ok(rights.includes(Buffer.from(got).toString('hex')), 'the true answer')
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
    // On a busy machine the flood takes longer than a query can, so the next one is shorter.
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
  for (const transport of ['udp', 'tcp'] as const) await junkOver(world, make, transport)
}

async function junkOver(
  world: World,
  make: (asked: AskedQuery) => Uint8Array,
  transport: 'udp' | 'tcp',
): Promise<void> {
  for (let tries = 1; ; tries++) {
    const name = world.name()
    const address = world.address()
    world.upstream.on(name, (asked) => {
      // Queries that are repeated over TCP because of the junk get no answer.
      if (asked.transport !== transport) return
      asked.send(make(asked))
      const right = answerTo(asked, { answers: [a(asked.question.name, address)] })
      setTimeout(() => asked.send(right), LATER_MS)
    })
    const got = await world.ask(transport, mkMessage(ask(name, { id: 8 })))
    const [asked] = world.upstream.asked(name).items
    assert.ok(asked)
    const right = answerTo(asked, { answers: [a(asked.question.name, address)] })
    // On a busy machine, the true answer can come after the query has ended.
    if (rcodeOf(got) === SERVFAIL && tries < 5) continue
    return assertSame(got, withId(right, 8), `the true answer over ${transport}`)
  }
}
