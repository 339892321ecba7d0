// docs/spec/correctness 2, A21 and A22: TCP clients that are slow on purpose, and one that is much too fast.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { frames } from '../lab/clients.ts'
import { localAnswer, rcodeOf } from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import { CONNECTIONS_PER_CLIENT, REFUSED, TCP_MESSAGE_MS, type World } from '../lab/world.ts'
import { ask, TXT } from './build.ts'
import { DENIED } from './row.ts'
import { mkMessage } from '../../support/messages.ts'

const PATIENCE_MS = 15_000
const STEP_MS = 100
const UNREAD = 3000
const UNREAD_OCTETS = 20_000
const PIPELINED = 200_000
/** The growth of a daemon for other reasons. It is less than all answers of A22, and less than a quarter of those of A21. */
const SLACK = 14 << 20
const MOST_OF_A_MESSAGE = 65_537

/** Each client announces 64 KiB and sends octet by octet. */
export async function slowloris(world: World): Promise<void> {
  const count = CONNECTIONS_PER_CLIENT
  const all = await Promise.all(Array.from({ length: count }, async () => await world.tcp('slow')))
  const started = performance.now()
  const limit = TCP_MESSAGE_MS + PATIENCE_MS
  const grown = await world.memoryGrownIn(async () => {
    for (const tcp of all) tcp.write(Uint8Array.of(0xff, 0xff))
    while (all.some(({ isOver }) => !isOver) && performance.now() - started < limit) {
      for (const tcp of all) tcp.write(Uint8Array.of(0))
      await sleep(STEP_MS)
    }
  })
  for (const tcp of all) {
    assert.ok(tcp.isOver, 'the connection was closed')
    assert.deepEqual(tcp.inbox.items, [], 'without an answer')
    tcp.close()
  }
  assert.ok(grown < count * 3 * MOST_OF_A_MESSAGE, `${grown >> 20} MiB more`)
}

/** The client leaves large answers unread, while others ask. */
export async function neverRead(world: World): Promise<void> {
  const name = world.name()
  const data = new Uint8Array(UNREAD_OCTETS).fill(0x20)
  world.upstream.on(name, (asked) => {
    const { question } = asked
    asked.send(answerTo(asked, { answers: [{ owner: question.name, type: TXT, data }] }))
  })
  const paused = async (): Promise<number> => await world.counter('namegate_tcp_reads_paused_total')
  const before = await paused()
  const deaf = await world.tcp('deaf')
  deaf.do('pause')
  const query = frames(mkMessage(ask(name)))
  const grown = await world.memoryGrownIn(async () => {
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
    for (let i = 0; (await paused()) === before; i++) {
      assert.ok(i < 300, 'the client reached its bound')
      await sleep(50)
    }
  })
  deaf.close()
  assert.ok(grown < SLACK, `${grown >> 20} MiB more`)
}

export async function pipelinedRefusals(world: World): Promise<void> {
  const query = ask(world.name(REFUSED), { id: 77 })
  const answer = frames(localAnswer(query, DENIED))
  const tcp = await world.tcp()
  tcp.do('quiet')
  const grown = await world.memoryGrownIn(async () => {
    tcp.write(frames(mkMessage(query)), PIPELINED)
    for (let i = 0; ; i++) {
      tcp.do('count')
      const octets = await tcp.counts.at(i)
      if (octets === answer.length * PIPELINED) break
      assert.ok(octets < answer.length * PIPELINED && i < 600, `${octets} octets`)
      await sleep(50)
    }
  })
  tcp.close()
  assert.ok(grown < SLACK, `${grown >> 20} MiB more`)
}
