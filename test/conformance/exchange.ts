// One exchange of a row: a client asks under a name of its own, and the server handles the query. The reply must be what the row expects.
// To show silence, the client sends a second query from the same socket, and its answer arrives first.

import assert from 'node:assert/strict'
import type { TcpClient, UdpClient } from './lab/clients.ts'
import { assertSame, localAnswer, SERVFAIL, withId } from './lab/replies.ts'
import { answerTo, type AskedQuery, type Transport } from './lab/upstream.ts'
import { ALLOWED, REFUSED, SELECTOR, type World } from './lab/world.ts'
import { DENIED, type Asking, type ExchangeRow, type Outcome, type Seen } from './rows/row.ts'
import { a, labelsOf, mkMessage, type MkMessage } from '../support/messages.ts'

export type NameKind = 'allowed' | 'refused'

const CLIENT_ID = 0x2a17

export async function exchange(
  world: World,
  row: ExchangeRow,
  transport: Transport,
  kind: NameKind,
): Promise<void> {
  const outcome = kind === 'allowed' ? row.allowed : (row.refused ?? DENIED)
  const given = world.name(kind === 'allowed' ? ALLOWED : REFUSED)
  const query: MkMessage = { id: CLIENT_ID, ...row.query(given) }
  // A row can put labels in front of the name.
  const asks = query.questions?.[0]?.name
  const name = Array.isArray(asks) && asks.length > 0 ? labelsOf(asks) : given
  const address = world.address()
  const answered: Uint8Array[] = []
  world.upstream.on(name, (asked) => {
    const messages = answersOf(row, { ...asked, address })
    answered.push(...messages)
    for (const message of messages) asked.send(message)
  })
  const sent = mkMessage(query)
  const end = transport === 'udp' ? await world.udp(row.client) : await world.tcp(row.client)
  try {
    if (outcome === 'silence') await expectSilence(world, end, sent)
    else {
      const got = await answerOver(world, end, sent)
      const asked = world.upstream.asked(name).items
      expectOutcome(outcome, { transport, query, sent, got, asked, answered })
    }
    if (!isForwarded(outcome)) {
      assert.deepEqual(world.upstream.asked(name).items, [], 'no query was forwarded')
    }
    if (row.teaches !== undefined && kind === 'allowed') {
      const labels = row.teaches ? [`fqdn:${SELECTOR}`] : []
      assert.deepEqual(await world.labelsOf(address), labels, `labels of ${address}`)
    }
  } finally {
    end.close()
  }
}

function answersOf(row: ExchangeRow, asking: Asking): readonly Uint8Array[] {
  if (row.answer !== undefined) return row.answer(asking)
  return [answerTo(asking, { answers: [a(asking.question.name, asking.address)] })]
}

/** The answer. Over UDP, it must come from the asked address. */
async function answerOver(
  world: World,
  end: UdpClient | TcpClient,
  sent: Uint8Array,
): Promise<Uint8Array> {
  end.send(sent)
  const first = await end.inbox.at(0)
  if (Buffer.isBuffer(first)) return first
  assert.deepEqual(
    { address: first.from, port: first.port },
    world.asked,
    'the source of the answer',
  )
  return first.octets
}

async function expectSilence(
  world: World,
  end: UdpClient | TcpClient,
  sent: Uint8Array,
): Promise<void> {
  const next: MkMessage = { id: 0x7777, questions: [{ name: world.name(REFUSED) }] }
  end.send(sent)
  end.send(mkMessage(next))
  const first = await end.inbox.at(0)
  const octets = Buffer.isBuffer(first) ? first : first.octets
  assertSame(octets, localAnswer(next, DENIED), 'only the query after it is answered')
}

function expectOutcome(outcome: Exclude<Outcome, 'silence'>, seen: Seen): void {
  if (typeof outcome === 'function') outcome(seen)
  else if (outcome === 'passes') expectPassed(seen)
  else assertSame(seen.got, localAnswer(seen.query, outcome), 'the local answer')
}

/** The messages must be equal except for the id, both ways, and over the transport of the client. */
export function expectPassed({ transport, sent, got, asked, answered }: Seen): void {
  const [first] = asked
  const [answer] = answered
  const reply = Buffer.from(got).toString('hex')
  assert.ok(
    first !== undefined && answer !== undefined,
    `the server was not asked; the client got: ${reply}`,
  )
  assertSame(withId(first.octets, CLIENT_ID), sent, 'the query at the server')
  assertSame(got, withId(answer, CLIENT_ID), 'the answer at the client')
  const others = asked.filter((each: AskedQuery) => each.transport !== transport)
  assert.deepEqual(others, [], `asked only over ${transport}`)
}

function isForwarded(outcome: Outcome): boolean {
  if (typeof outcome === 'function' || outcome === 'passes') return true
  return outcome !== 'silence' && outcome.rcode === SERVFAIL
}
