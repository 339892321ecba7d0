// `run --take-over`: a new process continues with the sockets, connections and queries of the running daemon, and clients notice nothing.
// If the successor fails, the source continues.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { isBuilt } from '../../src/native/native.ts'
import { until } from '../support/peers/client.ts'
import { canUseSteadyDns } from '../support/peers/steady-dns.ts'
import { PROGRAM } from '../support/nodes/daemon-process.ts'
import { readAnswer } from '../support/peers/dns-client.ts'
import { LabProcess } from '../support/labs/lab-process.ts'
import { Supervise } from '../support/peers/supervise.ts'
import { TAKE_OVER, withTakeOverSite, type TakeOverSite } from '../support/labs/take-over-site.ts'
import {
  answering,
  answerTo,
  FakeUpstream,
  frame,
  queryFor,
  type SeenQuery,
} from '../support/peers/upstream.ts'

const skip = isBuilt('posix') && isBuilt('udp') && isBuilt('tcp') ? false : 'no native part'
let upstream: FakeUpstream
before(async () => (upstream = await FakeUpstream.start()))
after(async () => await upstream.stop())

async function withSite(run: (site: TakeOverSite) => Promise<void>): Promise<void> {
  await withTakeOverSite(upstream, run)
}

/** A first daemon with a watchdog of a second, and what its supervisor receives. */
async function superviseFirst(site: TakeOverSite) {
  const supervise = new Supervise()
  const socket = site.folder.in('notify')
  const heard = await supervise.notify(socket)
  site.later(async () => await heard.stop())
  const env = { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '1000000' }
  const first = supervise.run(site.folder, env)
  site.later(async () => await first.stop())
  await heard.untilOutput(/^READY=1$/m, 60_000)
  return { first, heard }
}

/** Holds queries until the test releases their answers. */
function hold(): { readonly held: SeenQuery[]; readonly release: () => void } {
  const held: SeenQuery[] = []
  upstream.behaviour = (query) => void held.push(query)
  return {
    held,
    release: () => {
      upstream.behaviour = answering
      for (const query of held.splice(0)) query.send(answerTo(query))
    },
  }
}

function asked(held: readonly SeenQuery[], ...names: readonly string[]): boolean {
  return names.every((name) => held.some((query) => query.name === name))
}

describe('run --take-over', { skip }, () => {
  test('continues with sockets, connections and queries in flight, and the first one ends with 0', async () => {
    await withSite(async (site) => {
      const first = await site.serve()
      const client = await site.client(first)
      const [whole, parted] = [await site.tcp(first), await site.tcp(first)]
      assert.equal((await client.ask('warm.example')).rcode, 'NOERROR')
      const { held, release } = hold()
      const inFlight = client.askSlowly('held.example')
      whole.send(queryFor('held-tcp.example', { id: 1 }))
      const message = frame(queryFor('parted.example', { id: 2 }))
      parted.socket.write(message.subarray(0, 9))
      await until('both are asked', () => asked(held, 'held.example', 'held-tcp.example'))
      const second = site.successor()
      await second.process.untilOutput(/namegate serves/, 60_000)
      await first.process.untilOutput(/another process goes on/)
      parted.socket.write(message.subarray(9))
      await until('the new one asks for its own', () => asked(held, 'parted.example'))
      assert.equal(first.process.running, true, 'it waits for its own queries')
      release()
      assert.equal((await inFlight).rcode, 'NOERROR')
      await Promise.all([whole.atLeast(1), parted.atLeast(1)])
      assert.equal(readAnswer(whole.received[0] ?? Buffer.alloc(12)).rcode, 'NOERROR')
      assert.equal((await first.process.ended(30_000))?.code, 0)
      // The second daemon knows the names that the first one learned.
      const names = (await second.get('/v1/names')).text
      for (const name of ['held.example', 'held-tcp.example', 'parted.example'])
        assert.match(names, new RegExp(name))
      assert.equal((await client.ask('after.example')).rcode, 'NOERROR')
      whole.send(queryFor('after-tcp.example', { id: 3 }))
      await whole.atLeast(2)
      assert.equal((await site.folder.namegate('status')).code, 0)
    })
  })

  test('can be repeated, and the last one ends as usual', async () => {
    await withSite(async (site) => {
      let daemon = await site.serve()
      const client = await site.client(daemon)
      for (let i = 0; i < 3; i++) {
        const next = site.successor()
        await next.process.untilOutput(/namegate serves/, 60_000)
        assert.equal((await daemon.process.ended(30_000))?.code, 0, `daemon ${i}`)
        assert.equal((await client.ask(`round-${i}.example`)).rcode, 'NOERROR')
        daemon = next
      }
      daemon.process.kill('SIGTERM')
      assert.equal((await daemon.process.ended(30_000))?.code, 0)
    })
  })

  test('closes the take-over socket before the successor opens its own', async () => {
    await withSite(async (site) => {
      const first = await site.serve()
      const successor = site.falseSuccessor('go')
      await successor.untilOutput(/told to go on, the way in is shut/, 60_000)
      assert.equal((await first.process.ended(30_000))?.code, 0)
    })
  })

  for (const how of ['dies', 'hangs'] as const) {
    test(`the first one continues when the successor ${how}, and nothing is lost`, async () => {
      await withSite(async (site) => {
        const first = await site.serve()
        const client = await site.client(first)
        const tcp = await site.tcp(first)
        const { held, release } = hold()
        const inFlight = client.askSlowly('held.example')
        await until('it is asked', () => asked(held, 'held.example'))
        tcp.send(queryFor('tcp.example', { id: 3 }))
        await until('it is asked', () => asked(held, 'tcp.example'))
        const successor = site.falseSuccessor()
        await successor.untilOutput(/given 1 listeners, 1 connections/, 60_000)
        const meanwhile = client.askSlowly('meanwhile.example')
        tcp.send(queryFor('meanwhile-tcp.example', { id: 4 }))
        if (how === 'dies') successor.kill('SIGKILL')
        await first.process.untilOutput(/the successor failed, this daemon goes on/, 20_000)
        assert.notEqual(
          await successor.ended(30_000),
          undefined,
          'the successor has ended, so it writes nothing',
        )
        release()
        assert.equal((await inFlight).rcode, 'NOERROR')
        assert.equal((await meanwhile).rcode, 'NOERROR')
        await tcp.atLeast(2)
        const third = site.successor()
        await third.process.untilOutput(/namegate serves/, 60_000)
        assert.equal((await first.process.ended(30_000))?.code, 0)
        assert.equal((await client.ask('third.example')).rcode, 'NOERROR')
      })
    })
  }

  test('ends with 3 when the running daemon hangs, and leaves it in charge', async () => {
    await withSite(async (site) => {
      const first = await site.serve()
      const { pid } = first.process
      first.process.kill('SIGSTOP')
      const ended = await site.successor().process.ended(60_000)
      first.process.kill('SIGCONT')
      assert.equal(ended?.code, 3, ended?.stderr)
      assert.match(ended.stderr, new RegExp(`daemon \\(pid ${pid}\\) does not answer in 5 s: `))
      assert.equal((await (await site.client(first)).ask('awake.example')).rcode, 'NOERROR')
      assert.equal(first.process.running, true)
    })
  })

  test('ends with 2 on broken policies before the source gives anything', async () => {
    await withSite(async (site) => {
      const first = await site.serve()
      site.folder.write('broken.yaml', 'kind: Nonsense\n')
      site.configure('{ paths: [policy.yaml, broken.yaml] }')
      const ended = await site.successor().process.ended(60_000)
      assert.equal(ended?.code, 2, ended?.stderr)
      assert.doesNotMatch(first.process.stderr, /the successor failed/)
      assert.equal((await (await site.client(first)).ask('still.example')).rcode, 'NOERROR')
    })
  })

  test('ends with 3 when no daemon runs, and when the running one has a listener that the successor lacks', async () => {
    await withSite(async (site) => {
      const alone = site.successor()
      const ended = await alone.process.ended(60_000)
      assert.equal(ended?.code, 3)
      assert.match(ended.stderr, /Cannot take over by .*: no daemon answers there/)
      const first = await site.serve()
      const client = await site.client(first)
      const { path } = site.folder
      site.folder.configure({
        ...site.config,
        listeners: '[{ address: 127.0.0.2, port: 0 }]',
      })
      const other = new LabProcess(PROGRAM, TAKE_OVER, { cwd: path })
      const refused = await other.ended(60_000)
      assert.equal(refused?.code, 3, refused?.stderr)
      assert.match(refused.stderr, /no listener for 4 127\.0\.0\.1 port \d+ \(explicit\)/)
      assert.equal((await client.ask('still.example')).rcode, 'NOERROR')
    })
  })

  test(
    'notifies the supervisor of the new main process',
    { skip: canUseSteadyDns() ?? false },
    async () => {
      await withSite(async (site) => {
        const { first, heard } = await superviseFirst(site)
        const second = site.successor()
        await second.process.untilOutput(/namegate serves/, 60_000)
        await heard.untilOutput(new RegExp(`^MAINPID=${second.process.pid} \\| STATUS=`, 'm'))
        assert.equal((await first.ended(30_000))?.code, 0)
        const from = heard.stdout.length
        await until(
          'the second one feeds the watchdog',
          () => heard.stdout.indexOf('WATCHDOG=1', from) > 0,
        )
        assert.doesNotMatch(heard.stdout, /STOPPING/)
      })
    },
  )

  test(
    'feeds the watchdog while a successor hangs',
    { skip: canUseSteadyDns() ?? false },
    async () => {
      await withSite(async (site) => {
        const { first, heard } = await superviseFirst(site)
        const successor = site.falseSuccessor()
        await successor.untilOutput(/given 1 listeners/, 60_000)
        const from = heard.stdout.length
        await until(
          'three notices in a row',
          () => heard.stdout.slice(from).split('WATCHDOG=1').length > 3,
        )
        assert.doesNotMatch(first.stderr, /the successor failed/)
        await first.untilOutput(/the successor failed, this daemon goes on/, 20_000)
        await until('it serves', () => /STATUS=serves 127/.test(heard.stdout.slice(from)))
        assert.doesNotMatch(heard.stdout.slice(from), /STATUS=serves $/m)
      })
    },
  )
})
