// docs/spec/correctness 2: many queries at a time, from one client and from several (A10, A11, A14, A23, A32).

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { UdpClient } from '../lab/clients.ts'
import {
  assertSame,
  localAnswer,
  rcodeOf,
  REFUSED as REFUSED_RCODE,
  SERVFAIL,
} from '../lab/replies.ts'
import { answerTo, type AskedQuery } from '../lab/upstream.ts'
import { IN_FLIGHT_PER_CLIENT, REFUSED, type OwnClient, type World } from '../lab/world.ts'
import { ask, askOpt, TXT } from './build.ts'
import { a, mkMessage } from '../../support/messages.ts'

const TOO_MANY = 40
/** Queries that can be unread by the proxy before the next one is sent. Every kernel buffer has room for so many. */
const UNSEEN = 20
/** The number of queries that A14 sends at once. */
const BOMB = 5000
const PATIENCE_MS = 30_000
const TWINS: readonly OwnClient[] = ['twin0', 'twin1', 'twin2', 'twin3']
const TWIN_PORT = 5353

/** Asks names that the server never answers, as one client over UDP, with one id each. */
async function askSilent(
  world: World,
  client: OwnClient,
  count: number,
  onAsked: (asked: AskedQuery) => void = () => undefined,
): Promise<UdpClient> {
  const udp = await world.udp(client)
  const seen = new Set<number>()
  for (let i = 0; i < count; i++) {
    const name = world.name()
    world.upstream.on(name, (asked) => {
      seen.add(i)
      onAsked(asked)
    })
    udp.send(mkMessage(askOpt(name, {}, { id: i })))
    while (seen.size + udp.inbox.items.length + UNSEEN < i) await sleep(5)
  }
  return udp
}

export async function shed(world: World, tries = 3): Promise<void> {
  const count = IN_FLIGHT_PER_CLIENT + TOO_MANY
  const udp = await askSilent(world, 'burst', count)
  const all = (await answersTo(udp, count)).map((each) => each.subarray(2).toString('hex'))
  const [overloaded, timedOut] = [endOfAnswer('overloaded', 0), endOfAnswer('', 22)]
  const shedCount = all.filter((hex) => hex.endsWith(overloaded)).length
  const timeouts = all.filter((hex) => hex.endsWith(timedOut)).length
  assert.equal(shedCount + timeouts, count)
  assert.ok(shedCount <= TOO_MANY, `${shedCount} were over the bound`)
  udp.close()
  await recovered(world)
  if (shedCount === TOO_MANY) return
  // Sending took longer than the timeout of a query, so the last ones found room again.
  assert.ok(tries > 1, `${shedCount} were over the bound`)
  await shed(world, tries - 1)
}

/** The client has its whole share again: so many queries reach the server before the first answer, and all get answers. */
async function recovered(world: World): Promise<void> {
  const held: AskedQuery[] = []
  const answered = new Set<string>()
  const answer = (asked: AskedQuery): void => {
    const { name } = asked.question
    answered.add(JSON.stringify(name))
    asked.send(answerTo(asked, { answers: [a(name, '198.19.0.11')] }))
  }
  const onAsked = (asked: AskedQuery): void => {
    held.push(asked)
    const names = new Set(held.map(({ question }) => JSON.stringify(question.name)))
    if (names.size === IN_FLIGHT_PER_CLIENT || answered.size > 0) held.splice(0).forEach(answer)
  }
  const udp = await askSilent(world, 'burst', IN_FLIGHT_PER_CLIENT, onAsked)
  const answers = await answersTo(udp, IN_FLIGHT_PER_CLIENT)
  assert.deepEqual(
    answers.filter((each) => rcodeOf(each) !== 0),
    [],
    'every query has an answer',
  )
  assert.equal(await world.counter('namegate_upstream_queries_in_flight'), 0, 'no query is left')
  udp.close()
}

/** The end of a local answer with this Extended DNS Error. */
function endOfAnswer(text: string, ede: number): string {
  const whole = localAnswer(askOpt(['x']), { rcode: SERVFAIL, ede, text })
  const additional = Buffer.from(whole).subarray(-(17 + text.length))
  return additional.toString('hex')
}

async function answersTo(udp: UdpClient, count: number): Promise<readonly Buffer[]> {
  await udp.inbox.until((items) => items.length >= count, `${count} answers`, PATIENCE_MS)
  const answers = udp.inbox.items.map(({ octets }) => octets)
  assert.equal(answers.length, count, 'one answer per query')
  assert.equal(new Set(answers.map((each) => each.readUInt16BE(0))).size, count, 'every id once')
  return answers
}

const octetsOf = (messages: readonly Uint8Array[]): number =>
  messages.reduce((sum, { length }) => sum + length, 0)

/** A server holds all queries and answers them at once. Counts the answers that reach the client (DNSBomb). */
export async function lateFlood(world: World): Promise<void> {
  const held: AskedQuery[] = []
  const dropped = async (): Promise<number> =>
    await world.counter('namegate_upstream_messages_dropped_total')
  const udp = await askSilent(world, 'storm', BOMB, (asked) => void held.push(asked))
  const answers = await answersTo(udp, BOMB)
  assert.ok(answers.every((each) => rcodeOf(each) === SERVFAIL))
  // The size of the refusals is in proportion to the queries, however large the answers that wait.
  const asked = BOMB * mkMessage(askOpt(world.name())).length
  assert.ok(octetsOf(answers) < 2 * asked, `${octetsOf(answers)} octets for ${asked}`)
  const before = await dropped()
  for (let i = 0; i < BOMB; i++) sendLarge(held[i % held.length])
  // A later query whose answer passes shows that they were handled.
  const got = await world.ask('udp', mkMessage(ask(world.name())), 'storm')
  assert.equal(rcodeOf(got), 0)
  assert.ok((await dropped()) > before, 'counted')
  await answersTo(udp, BOMB)
  assert.deepEqual(await world.labelsOf('198.19.0.14'), [], 'late answers teach nothing')
  udp.close()
  await pulse(world)
}

/** At most one client's share of answers arrives in time, however many queries it sent. */
async function pulse(world: World): Promise<void> {
  const held: AskedQuery[] = []
  const count = 10 * IN_FLIGHT_PER_CLIENT
  const udp = await askSilent(world, 'storm', count, (asked) => void held.push(asked))
  const names = new Map(held.map((asked) => [JSON.stringify(asked.question.name), asked]))
  for (const asked of names.values()) sendLarge(asked)
  const answers = await answersTo(udp, count)
  const large = answers.filter((each) => rcodeOf(each) === 0)
  assert.ok(large.length <= IN_FLIGHT_PER_CLIENT, `${large.length} answers at once`)
  udp.close()
}

function sendLarge(asked: AskedQuery | undefined): void {
  if (asked === undefined) throw new Error('the server has no query')
  const { name } = asked.question
  const data = new Uint8Array(1000).fill(0x20)
  const answers = [a(name, '198.19.0.14'), { owner: name, type: TXT, data }]
  asked.send(answerTo(asked, { answers }))
}

export async function crowd(world: World): Promise<void> {
  const slow = await askSilent(world, 'slow', IN_FLIGHT_PER_CLIENT + TOO_MANY)
  const other = await world.udp()
  for (let i = 0; i < 50; i++) {
    const refused = i % 2 === 1
    other.send(mkMessage(ask(world.name(refused ? REFUSED : undefined), { id: i })))
  }
  const answers = await answersTo(other, 50)
  for (const each of answers) {
    const refused = each.readUInt16BE(0) % 2 === 1
    assert.equal(rcodeOf(each), refused ? REFUSED_RCODE : 0)
  }
  const isOpen = slow.inbox.items.length < IN_FLIGHT_PER_CLIENT + TOO_MANY
  assert.ok(isOpen, 'while the first client’s names were slow')
  slow.close()
  other.close()
}

export async function idsOfOthers(world: World): Promise<void> {
  const [name, other] = [world.name(), world.name()]
  const asks = [name, name, name.map((label) => label.toUpperCase()), other]
  const held: AskedQuery[] = []
  const ttl = new Map<string, number>()
  const send = (asked: AskedQuery): void => {
    const seconds = 100 + ttl.size
    ttl.set(`${asked.port} ${asked.id}`, seconds)
    asked.send(answerTo(asked, { answers: [a(asked.question.name, '198.19.0.10', seconds)] }))
  }
  const hold = (asked: AskedQuery): void => {
    held.push(asked)
    if (held.length < asks.length) return
    for (const each of held.splice(0).toReversed()) send(each)
  }
  for (const each of [name, other]) world.upstream.on(each, hold)
  const clients = await Promise.all(TWINS.map(async (twin) => await world.udp(twin, TWIN_PORT)))
  const messages = asks.map((each) => mkMessage(ask(each, { id: 0x0bad })))
  for (const [i, client] of clients.entries()) client.send(messages[i] ?? new Uint8Array(0))
  const answers = await Promise.all(
    clients.map(async (client) => (await client.inbox.at(0)).octets),
  )
  for (const [i, octets] of answers.entries()) {
    const asked = messages[i] ?? new Uint8Array(0)
    assert.equal(octets.readUInt16BE(0), 0x0bad)
    assertSame(
      octets.subarray(12, asked.length),
      asked.subarray(12),
      'the client’s own question and case',
    )
  }
  const ttls = answers.map((octets) => octets.readUInt32BE(octets.length - 10))
  assert.equal(new Set(ttls).size, ttls.length, 'every client gets its own answer')
  for (const client of clients) client.close()
}

export async function oneAnswerEach(world: World): Promise<void> {
  for (const transport of ['udp', 'tcp'] as const) {
    const name = world.name()
    world.upstream.on(name, (asked) => {
      const message = answerTo(asked, { answers: [a(asked.question.name, '198.19.0.23')] })
      for (let i = 0; i < 5; i++) asked.send(message)
    })
    const end = transport === 'udp' ? await world.udp() : await world.tcp()
    for (let size = 0; size < 12; size++) end.send(new Uint8Array(size))
    end.send(mkMessage(ask(name, { id: 1 })))
    await end.inbox.at(0)
    end.send(mkMessage(ask(world.name(), { id: 2 })))
    await end.inbox.at(1)
    end.send(mkMessage(ask(world.name(REFUSED), { id: 3 })))
    await end.inbox.at(2)
    const ids = end.inbox.items.map((item) =>
      (Buffer.isBuffer(item) ? item : item.octets).readUInt16BE(0),
    )
    assert.deepEqual(ids, [1, 2, 3], transport)
    end.close()
  }
}
