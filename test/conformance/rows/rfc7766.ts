// docs/spec/correctness 1.2: RFC 7766, 7828 and 9210, DNS over TCP.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { frames } from '../lab/clients.ts'
import { rcodeOf } from '../lab/replies.ts'
import { answerTo } from '../lab/upstream.ts'
import { REFUSED, TCP_IDLE_MS, TCP_MESSAGE_MS } from '../lab/world.ts'
import { ask, askOpt, KEEPALIVE, options } from './build.ts'
import type { Row } from './row.ts'
import {
  hold,
  idsOf,
  manyConnections,
  pipelined,
  release,
  reused,
  untilLabelled,
} from './tcp-scripts.ts'
import { a, mkMessage } from '../../support/messages.ts'

/** On a busy machine, a test can see the end of a connection so much later. */
const PATIENCE_MS = 15_000

export const RFC_7766: readonly Row[] = [
  {
    kind: 'exchange',
    id: 'T1',
    what: 'the answer has the transport of the query; over TCP it is on the same connection',
    query: (name) => ask(name),
    allowed: 'passes',
    inEveryMode: true,
    teaches: true,
  },
  {
    kind: 'script',
    id: 'T2',
    what: '100 queries in one write are all answered, in any order of answers, including refused ones',
    run: pipelined,
  },
  {
    kind: 'script',
    id: 'T3',
    what: 'a slow query does not block later ones',
    run: async (world) => {
      const slow = world.name()
      const held = hold(world, slow)
      const tcp = await world.tcp()
      const rest = Array.from({ length: 20 }, () => world.name())
      tcp.send(...[slow, ...rest].map((name, i) => mkMessage(ask(name, { id: i }))))
      await tcp.inbox.at(19)
      assert.deepEqual(
        idsOf(tcp),
        Array.from({ length: 20 }, (_, i) => i + 1),
      )
      release(held)
      assert.equal((await tcp.inbox.at(20)).readUInt16BE(0), 0)
      tcp.close()
    },
  },
  {
    kind: 'script',
    id: 'T4',
    what: 'a message in pieces, including its length, is read whole',
    run: async (world) => {
      const tcp = await world.tcp()
      const names = [world.name(), world.name(REFUSED)]
      for (const [i, name] of names.entries()) {
        const octets = frames(mkMessage(ask(name, { id: i })))
        for (let at = 0; at < octets.length; at++) {
          tcp.write(octets.subarray(at, at + 1))
          if (at < 4) await sleep(30)
        }
      }
      await tcp.inbox.at(1)
      assert.deepEqual(new Set(idsOf(tcp)), new Set([0, 1]))
      assert.equal(tcp.isOver, false)
      tcp.close()
    },
  },
  {
    kind: 'script',
    id: 'T5',
    what: 'length and message are sent in one write',
    run: async (world) => {
      const tcp = await world.tcp()
      for (const [i, name] of [world.name(), world.name(REFUSED)].entries()) {
        tcp.send(mkMessage(ask(name, { id: i })))
        const message = await tcp.inbox.at(i)
        assert.equal(tcp.chunks.length, i + 1, 'one read per answer')
        assert.equal(tcp.chunks[i]?.length, message.length + 2)
      }
      tcp.close()
    },
  },
  {
    kind: 'script',
    id: 'T6',
    what: 'an idle connection is closed, and so is one that sends octets without a whole message',
    run: async (world) => {
      const started = performance.now()
      const [idle, dribbling] = [await world.tcp(), await world.tcp()]
      const octets = frames(mkMessage(ask(world.name(), { trailing: new Uint8Array(2000) })))
      let at = 0
      const dribble = setInterval(() => {
        dribbling.write(octets.subarray(at, ++at))
      }, 100)
      try {
        await idle.ends.at(0, TCP_IDLE_MS + PATIENCE_MS)
        assert.ok(performance.now() - started >= TCP_IDLE_MS * 0.9, 'not before the idle time')
        await dribbling.ends.at(0, TCP_MESSAGE_MS + PATIENCE_MS)
      } finally {
        clearInterval(dribble)
      }
      for (const each of [idle, dribbling]) each.close()
    },
  },
  {
    kind: 'script',
    id: 'T7',
    what: 'the answer for a client that has left still teaches',
    run: async (world) => {
      const name = world.name()
      const address = world.address()
      const held = hold(world, name)
      const tcp = await world.tcp()
      tcp.send(mkMessage(ask(name)))
      await world.upstream.asked(name).at(0)
      tcp.close()
      await sleep(50)
      release(held, address)
      await untilLabelled(world, address)
      assert.equal(rcodeOf(await world.ask('tcp', mkMessage(ask(world.name())))), 0)
    },
  },
  {
    kind: 'script',
    id: 'T8',
    what: 'the server sees one connection, reused and pipelined, and never the same id twice at once',
    run: reused,
  },
  {
    kind: 'script',
    id: 'T9',
    what: 'queries are repeated after the server closes the connection',
    run: async (world) => {
      const names = [world.name(), world.name(), world.name()]
      let came = 0
      for (const name of names) {
        const address = world.address()
        world.upstream.on(name, (asked) => {
          came++
          // All queries have arrived: the server closes the connection, and answers later queries.
          if (came === names.length) world.upstream.hangUp(asked.connection)
          if (came <= names.length) return
          asked.send(answerTo(asked, { answers: [a(asked.question.name, address)] }))
        })
      }
      const tcp = await world.tcp()
      tcp.send(...names.map((name, i) => mkMessage(ask(name, { id: i }))))
      await tcp.inbox.at(names.length - 1)
      assert.deepEqual(new Set(idsOf(tcp)), new Set([0, 1, 2]))
      assert.deepEqual(tcp.inbox.items.map(rcodeOf), [0, 0, 0])
      tcp.close()
    },
    alone: 'quiet',
  },
  {
    kind: 'script',
    id: 'T10',
    what: 'at the bound of connections per client the oldest idle one is closed, and other clients notice nothing',
    run: manyConnections,
  },
  {
    kind: 'exchange',
    id: 'T11',
    what: 'edns-tcp-keepalive passes unchanged',
    query: (name) => askOpt(name, { options: options([KEEPALIVE, 0]) }),
    answer: (asking) => [
      answerTo(asking, {
        answers: [a(asking.question.name, asking.address)],
        additionals: askOpt([], { options: options([KEEPALIVE, 2]) }).additionals ?? [],
      }),
    ],
    allowed: 'passes',
  },
  {
    kind: 'tests',
    id: 'T12',
    what: 'connections, connections per client, idle time and queries per connection have bounds that the config sets',
    note: 'connection lifetime and the total of queries per connection are optional in RFC 9210, and not built',
    tests: [
      ['test/proxy/server/tcp-limits.test.ts', ''],
      ['test/core/limits.test.ts', ''],
    ],
  },
  {
    kind: 'script',
    id: 'T13',
    what: 'a client that closed its half gets its answers, and then the connection ends',
    run: async (world) => {
      const tcp = await world.tcp()
      const [allowed, refused] = [world.name(), world.name(REFUSED)]
      tcp.send(...[allowed, refused].map((name, i) => mkMessage(ask(name, { id: i }))))
      tcp.do('end')
      await tcp.inbox.at(1)
      assert.deepEqual(new Set(idsOf(tcp)), new Set([0, 1]))
      await tcp.ends.at(0)
      tcp.close()
    },
  },
]
