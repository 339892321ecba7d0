// CORRECTNESS 2, A21 and A22: TCP clients that are slow on purpose, and one that is far too fast.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { frames } from '../lab/clients.ts'
import { localAnswer, rcodeOf } from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import { REFUSED, TCP_MESSAGE_MS, type World } from '../lab/world.ts'
import { ask } from './build.ts'
import { DENIED } from './row.ts'
import { mkMessage } from '../../support/messages.ts'

const PATIENCE_MS = 15_000
const STEP_MS = 100
const UNREAD = 3000
const PIPELINED = 20_000

export async function slowloris(world: World): Promise<void> {
  const tcp = await world.tcp()
  const started = performance.now()
  const limit = TCP_MESSAGE_MS + PATIENCE_MS
  tcp.write(Uint8Array.of(0xff, 0xff))
  while (!tcp.isOver && performance.now() - started < limit) {
    tcp.write(Uint8Array.of(0))
    await sleep(STEP_MS)
  }
  assert.ok(tcp.isOver, 'it was closed')
  assert.deepEqual(tcp.inbox.items, [], 'without an answer')
  tcp.close()
}

/** Large answers that the client leaves where they are, while others ask. */
export async function neverRead(world: World): Promise<void> {
  const name = world.name()
  const data = new Uint8Array(20_000).fill(0x20)
  world.upstream.on(name, (asked) => {
    const { question } = asked
    asked.send(answerTo(asked, { answers: [{ owner: question.name, type: 16, data }] }))
  })
  const deaf = await world.tcp('deaf')
  deaf.do('pause')
  const query = frames(mkMessage(ask(name)))
  deaf.write(query, UNREAD)
  for (let i = 0; i < 20; i++) {
    const transport = i % 2 === 0 ? 'udp' : 'tcp'
    const refused = i % 4 > 1
    const got = await world.ask(
      transport,
      mkMessage(ask(world.name(refused ? REFUSED : undefined))),
    )
    assert.equal(rcodeOf(got), refused ? 5 : 0)
  }
  deaf.close()
}

export async function pipelinedRefusals(world: World): Promise<void> {
  const query = ask(world.name(REFUSED), { id: 77 })
  const answer = frames(localAnswer(query, DENIED))
  const tcp = await world.tcp()
  tcp.do('quiet')
  tcp.write(frames(mkMessage(query)), PIPELINED)
  for (let i = 0; ; i++) {
    tcp.do('count')
    const octets = await tcp.counts.at(i)
    if (octets === answer.length * PIPELINED) break
    assert.ok(octets < answer.length * PIPELINED && i < 600, `${octets} octets`)
    await sleep(50)
  }
  tcp.close()
}
