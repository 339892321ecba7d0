// docs/spec/correctness 1.4: RFC 5452, resilience against forged answers.

import assert from 'node:assert/strict'
import { assertSame, withId } from '../lab/replies.ts'
import { answerTo, type AskedQuery, type Forged } from '../lab/upstream.ts'
import { SELECTOR, type World } from '../lab/world.ts'
import { ask } from './build.ts'
import type { Row } from './row.ts'
import { a, mkMessage, opt, type MkQuestion } from '../../support/messages.ts'

const FALSE_ADDRESS = '198.19.66.6'
const LATER_MS = 50

export const RFC_5452: readonly Row[] = [
  forged('another address', () => ({}), 'address'),
  forged('another port', () => ({}), 'port'),
  forged('another id', ({ id }) => ({ id: id ^ 0x0100 })),
  forged('another name', ({ question }) => ({ questions: [{ ...question, name: 'x.ok.test' }] })),
  forged('another class', ({ question }) => ({ questions: [{ ...question, class: 3 }] })),
  forged('another type', ({ question }) => ({ questions: [{ ...question, type: 28 }] })),
  {
    kind: 'script',
    id: 'F1',
    what: 'an answer to another port of namegate is ignored',
    run: anotherPort,
  },
  {
    kind: 'tests',
    id: 'F2',
    what: 'ports and ids over 10,000 queries: range, chi-square, no order',
    tests: [
      [
        'test/proxy/upstream/upstream.test.ts',
        'Upstream spreads queries over random ports and ids',
      ],
      ['test/proxy/upstream/upstream.test.ts', 'Upstream draws a random socket for each query'],
    ],
  },
  {
    kind: 'script',
    id: 'F3',
    what: 'the same question is sent once for one client, and again for another',
    run: coalesced,
  },
  {
    kind: 'tests',
    id: 'F3',
    what: 'which queries are joined and which are not',
    tests: [
      ['test/proxy/upstream/coalescing.test.ts', 'Coalescing joins equal queries of one client'],
    ],
  },
]

/** The forged answer arrives first, and the true one a little later, over UDP. TCP gets no answer. */
function forged(
  what: string,
  change: (asked: AskedQuery) => {
    readonly id?: number
    readonly questions?: readonly MkQuestion[]
  },
  from: Forged = 'none',
): Row {
  return {
    kind: 'script',
    id: 'F1',
    what: `an answer with ${what} is ignored: the true one counts`,
    run: async (world) => {
      const name = world.name()
      const address = world.address()
      world.upstream.on(name, (asked) => {
        if (asked.transport === 'tcp') return
        const { question } = asked
        const answers = [a(question.name, FALSE_ADDRESS)]
        world.upstream.sendUdp(answerTo(asked, { answers, ...change(asked) }), asked.port, from)
        const right = answerTo(asked, { answers: [a(question.name, address)] })
        setTimeout(() => asked.send(right), LATER_MS)
      })
      const got = await world.ask('udp', mkMessage(ask(name, { id: 5 })))
      const [asked] = world.upstream.asked(name).items
      assert.ok(asked)
      const right = answerTo(asked, { answers: [a(asked.question.name, address)] })
      assertSame(got, withId(right, 5), 'the true answer')
      assert.deepEqual(await world.labelsOf(address), [`fqdn:${SELECTOR}`])
      assert.deepEqual(await world.labelsOf(FALSE_ADDRESS), [])
    },
  }
}

/** Asks two queries from two sockets. Each socket gets the other's answer, with the other's id and with its own. */
async function anotherPort(world: World): Promise<void> {
  const [first, held] = [world.name(), new Map<number, AskedQuery>()]
  const answers = [a(first, FALSE_ADDRESS)]
  world.upstream.on(first, (asked) => {
    if (asked.transport === 'udp') held.set(asked.port, asked)
  })
  const client = await world.udp()
  // The queries differ in RD, so that no answer fits both.
  for (let i = 0; held.size < 2; i++) {
    assert.ok(i < 64, 'several sockets send queries')
    client.send(
      mkMessage(
        ask(first, { id: i, flags: (i % 2) * 0x0100, additionals: [opt({ udpSize: 600 + i })] }),
      ),
    )
    await world.upstream.asked(first).at(i)
  }
  const [one, two] = [...held.values()]
  assert.ok(one && two)
  world.upstream.sendUdp(answerTo(one, { answers }), two.port)
  world.upstream.sendUdp(answerTo(two, { answers }), one.port)
  const behind = world.name()
  client.send(mkMessage(ask(behind, { id: 999 })))
  const got = await client.inbox.at(0)
  assert.equal(got.octets.readUInt16BE(0), 999, 'neither was accepted')
  assert.deepEqual(await world.labelsOf(FALSE_ADDRESS), [])
  client.close()
}

async function coalesced(world: World): Promise<void> {
  const count = 20
  const [name, behind] = [world.name(), world.name()]
  const held: AskedQuery[] = []
  let isOpen = false
  const release = (asked: AskedQuery): void =>
    asked.send(answerTo(asked, { answers: [a(asked.question.name, '198.19.0.1')] }))
  world.upstream.on(name, (asked) => void (isOpen ? release(asked) : held.push(asked)))
  const [one, other] = [await world.udp('twin0'), await world.udp('twin1')]
  for (let i = 0; i < count; i++) one.send(mkMessage(ask(name, { id: i })))
  one.send(mkMessage(ask(behind, { id: 100 })))
  await one.inbox.at(0)
  const asked = world.upstream.asked(name).items.length
  // On a busy machine a query can be repeated.
  assert.ok(asked >= 1 && asked <= 3, `asked ${asked} times for ${count} queries`)
  other.send(mkMessage(ask(name, { id: 7 })))
  await world.upstream.asked(name).at(asked)
  isOpen = true
  for (const each of held) release(each)
  await one.inbox.at(count)
  await other.inbox.at(0)
  const ids = one.inbox.items.map(({ octets }) => octets.readUInt16BE(0))
  assert.equal(new Set(ids).size, count + 1, 'each with its own id')
  one.close()
  other.close()
}
