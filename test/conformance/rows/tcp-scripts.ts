// The scripts over the wire of rows about TCP that need more than a few lines, and their shared parts.

import assert from 'node:assert/strict'
import type { TcpClient } from '../lab/clients.ts'
import { assertSame, localAnswer, rcodeOf } from '../lab/replies.ts'
import { answerTo, type AskedQuery } from '../lab/upstream.ts'
import { CONNECTIONS_PER_CLIENT, REFUSED, SELECTOR, type World } from '../lab/world.ts'
import { ask } from './build.ts'
import { DENIED } from './row.ts'
import { until } from '../../support/peers/client.ts'
import { a, mkMessage } from '../../support/messages.ts'

export function idsOf(tcp: TcpClient): number[] {
  return tcp.inbox.items.map((octets) => octets.readUInt16BE(0))
}

/** Queries for the name wait. After the first is released, later ones are answered at once. */
export function hold(world: World, name: readonly string[]): AskedQuery[] {
  const held: AskedQuery[] = []
  world.upstream.on(name, (asked) => held.push(asked))
  return held
}

export function release(held: readonly AskedQuery[], address = '198.19.255.2'): void {
  for (const asked of held) {
    asked.send(answerTo(asked, { answers: [a(asked.question.name, address)] }))
  }
}

export async function untilLabelled(world: World, address: string): Promise<void> {
  const isLabelled = async () => (await world.labelsOf(address)).includes(`fqdn:${SELECTOR}`)
  await until(`labels of ${address}`, isLabelled, 30_000, 25)
}

export async function pipelined(world: World): Promise<void> {
  const count = 100
  const queries = Array.from({ length: count }, (_, i) => {
    const name = world.name(i % 2 === 0 ? undefined : REFUSED)
    return { name, message: ask(name, { id: i }) }
  })
  const allowed = queries.filter((_, i) => i % 2 === 0)
  const waiting = new Map<string, AskedQuery>()
  for (const { name } of allowed) {
    world.upstream.on(name, (asked) => {
      waiting.set(name.join('.'), asked)
      if (waiting.size < allowed.length) return
      for (const each of [...waiting.values()].toReversed()) release([each])
    })
  }
  const tcp = await world.tcp()
  tcp.send(...queries.map(({ message }) => mkMessage(message)))
  await tcp.inbox.at(count - 1)
  const byId = new Map(tcp.inbox.items.map((octets) => [octets.readUInt16BE(0), octets]))
  assert.equal(byId.size, count, 'each once')
  for (const [i, { message }] of queries.entries()) {
    const got = byId.get(i)
    assert.ok(got)
    if (i % 2 === 1) assertSame(got, localAnswer(message, DENIED), 'refused')
    else assert.equal(rcodeOf(got), 0)
  }
  tcp.close()
}

export async function reused(world: World): Promise<void> {
  const names = Array.from({ length: 60 }, () => world.name())
  const held = names.map((name) => hold(world, name))
  const tcp = await world.tcp('piped')
  tcp.send(...names.map((name, i) => mkMessage(ask(name, { id: i }))))
  await Promise.all(names.map(async (name) => await world.upstream.asked(name).at(0)))
  const asked = held.flatMap(([first]) => (first === undefined ? [] : [first]))
  const connections = new Set(asked.map(({ connection }) => connection))
  assert.ok(connections.size <= 2, `${connections.size} connections`)
  const ids = new Set(asked.map(({ connection, id }) => `${connection} ${id}`))
  assert.equal(ids.size, asked.length, 'ids on a connection differ')
  for (const each of held) release(each)
  await tcp.inbox.at(names.length - 1)
  tcp.close()
}

export async function manyConnections(world: World): Promise<void> {
  const more = 4
  const oldest = await Promise.all(
    Array.from({ length: more }, async () => await world.tcp('many')),
  )
  const open = await Promise.all(
    Array.from({ length: CONNECTIONS_PER_CLIENT }, async () => await world.tcp('many')),
  )
  for (const each of oldest) await each.ends.at(0)
  const names = open.map(() => world.name())
  for (const [i, name] of names.entries()) {
    hold(world, name)
    open[i]?.send(mkMessage(ask(name)))
  }
  await Promise.all(names.map(async (name) => await world.upstream.asked(name).at(0)))
  const refused = await world.tcp('many').catch(() => undefined)
  await refused?.ends.at(0)
  assert.ok(
    open.every((each) => !each.isOver),
    'no waiting query',
  )
  assert.equal(rcodeOf(await world.ask('tcp', mkMessage(ask(world.name())))), 0, 'another client')
  for (const each of [...oldest, ...open]) each.close()
}
