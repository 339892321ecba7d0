// The daemon as a service: its notices to the supervisor, the watchdog, which queries through the whole path feed whatever servers do,
// passed sockets, and the orderly end.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { canUseSteadyDns } from '../support/peers/steady-dns.ts'
import { TcpClient, until } from '../support/peers/client.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder } from '../support/nodes/daemon-process.ts'
import { freePort } from '../support/nodes/free-port.ts'
import { DnsClient, readAnswer } from '../support/peers/dns-client.ts'
import { LabProcess } from '../support/labs/lab-process.ts'
import { Supervise } from '../support/peers/supervise.ts'
import { answering, answerTo, FakeUpstream, queryFor, silent } from '../support/peers/upstream.ts'
import { isBuilt } from '../../src/native/native.ts'

const skip = isBuilt('posix') && isBuilt('udp') ? (canUseSteadyDns() ?? false) : 'no native part'
const PROGRAM_ARGS = ['run', '--config', 'namegate.yaml']

let upstream: FakeUpstream
let supervise: Supervise
before(async () => {
  upstream = await FakeUpstream.start()
  if (skip === false) supervise = new Supervise()
})
after(async () => {
  await upstream.stop()
})

function makeFolder(port = 0): DaemonFolder {
  return new DaemonFolder({
    files: {
      'policy.yaml': policyText('web', ['*.example']),
      'endpoints.yaml': endpointsText({ one: '127.0.0.1' }),
    },
    config: {
      listeners: `[{ address: 127.0.0.1, port: ${port} }]`,
      upstreams: `{ servers: ["127.0.0.1:${upstream.port}"] }`,
    },
  })
}

/** Runs a test with its parts, and ends them in any case. */
async function withParts(
  run: (parts: {
    readonly folder: DaemonFolder
    readonly start: (child: LabProcess) => LabProcess
  }) => Promise<void>,
  port = 0,
): Promise<void> {
  const folder = makeFolder(port)
  const children: LabProcess[] = []
  const start = (child: LabProcess): LabProcess => {
    children.push(child)
    return child
  }
  try {
    await run({ folder, start })
  } finally {
    for (const child of children.reverse()) await child.stop()
    folder.remove()
    upstream.behaviour = answering
  }
}

describe('namegate as a service', { skip }, () => {
  for (const kind of ['path', 'abstract'] as const) {
    test(`run notifies a supervisor at ${kind === 'path' ? 'a path' : 'an abstract name'} that it is ready when a server has answered`, async () => {
      await withParts(async ({ folder, start }) => {
        const name = kind === 'path' ? folder.in('notify') : `@namegate-test-${process.pid}`
        const heard = start(await supervise.notify(name))
        upstream.behaviour = silent
        const daemon = start(
          supervise.run(folder, { NOTIFY_SOCKET: name, WATCHDOG_USEC: '1000000' }),
        )
        await heard.untilOutput(/STATUS=starting: .*no upstream has answered/, 60_000)
        await heard.untilOutput(/EXTEND_TIMEOUT_USEC=\d+/)
        assert.doesNotMatch(heard.stdout, /READY=1|WATCHDOG=1/)
        upstream.behaviour = answering
        await heard.untilOutput(/^READY=1$/m, 20_000)
        await heard.untilOutput(/^STATUS=serves 127\.0\.0\.1:\d+$/m)
        daemon.kill('SIGHUP')
        await heard.untilOutput(/^RELOADING=1\n[^]*^READY=1$/m)
        daemon.kill('SIGTERM')
        await heard.untilOutput(/^STOPPING=1 \| STATUS=stopping$/m)
        assert.equal((await daemon.ended(10_000))?.code, 0)
      })
    })
  }

  test('run feeds the watchdog while no server answers', async () => {
    await withParts(async ({ folder, start }) => {
      const heard = start(await supervise.notify(folder.in('notify')))
      start(supervise.run(folder, { NOTIFY_SOCKET: folder.in('notify'), WATCHDOG_USEC: '800000' }))
      await heard.untilOutput(/^READY=1$/m, 60_000)
      upstream.behaviour = silent
      const fed = (): number => heard.stdout.split('WATCHDOG=1').length - 1
      const from = fed()
      await until('the watchdog is fed', () => fed() >= from + 10, 20_000)
      assert.ok(
        upstream.queries.every(({ name }) => !name.endsWith('namegate.invalid')),
        'without a query to a server',
      )
    })
  })

  test('run serves its passed sockets, and answers queries that arrived before it started', async () => {
    const port = await freePort()
    await withParts(async ({ folder, start }) => {
      const gate = start(
        supervise.activate(folder, [`udp:127.0.0.1:${port}`, `tcp:127.0.0.1:${port}`]),
      )
      const client = await DnsClient.open(port)
      await gate.untilOutput(/namegate serves/, 60_000)
      assert.equal((await client.ask('a.example')).rcode, 'NOERROR')
      const first = /started (\d+)/.exec(gate.stdout)?.[1] ?? ''
      process.kill(Number(first), 'SIGTERM')
      await gate.untilOutput(/ended 0/)
      // Sent while no daemon reads.
      const told = client.ask('b.example')
      const tcp = await TcpClient.open(port)
      tcp.send(queryFor('c.example', { id: 7 }))
      await gate.untilOutput(/started \d+\n(?:.*\n)*started \d+/)
      await until(
        'the second daemon serves',
        () => gate.stderr.split('namegate serves').length > 2,
        60_000,
      )
      assert.equal((await told).rcode, 'NOERROR')
      await tcp.atLeast(1)
      tcp.close()
      client.close()
    }, port)
  })

  test('run refuses passed sockets without a listener, with the address', async () => {
    const [port, other] = [await freePort(), await freePort()]
    await withParts(async ({ folder, start }) => {
      const gate = start(supervise.activate(folder, [`udp:127.0.0.1:${other}`]))
      await gate.untilOutput(/ended 3/, 60_000)
      assert.match(
        gate.stderr,
        new RegExp(`Cannot take passed socket UDP 127\\.0\\.0\\.1:${other}: no listener`),
      )
    }, port)
  })

  test(
    'run behind systemd-socket-activate answers the query that started it',
    { skip: activateSkip() },
    async () => {
      const port = await freePort()
      await withParts(async ({ folder, start }) => {
        const program = [process.cwd() + '/bin/namegate', ...PROGRAM_ARGS]
        const args = ['--datagram', '-l', `127.0.0.1:${port}`, ...program]
        const gate = start(new LabProcess('systemd-socket-activate', args, { cwd: folder.path }))
        await gate.untilListening('udp', port)
        const client = await DnsClient.open(port)
        assert.equal((await client.askSlowly('a.example')).rcode, 'NOERROR')
        client.close()
      }, port)
    },
  )

  test('run answers queries in flight after a stop signal, and refuses later ones', async () => {
    await withParts(async ({ folder, start }) => {
      upstream.behaviour = answering
      const daemon = await folder.serve()
      start(daemon.process)
      const client = await daemon.client()
      await client.ask('warm.example')
      const tcp = await TcpClient.open(daemon.port)
      let answer = (): void => undefined
      const held = new Promise<void>((done) => (answer = done))
      upstream.behaviour = (query) => void held.then(() => query.send(answerTo(query)))
      const seen = upstream.queries.length
      const late = client.ask('late.example')
      tcp.send(queryFor('late-tcp.example', { id: 9 }))
      await until('both are asked', () => upstream.queries.length === seen + 2)
      daemon.process.kill('SIGTERM')
      await daemon.process.untilOutput(/stopping/)
      const refused = await client.ask('new.example')
      assert.deepEqual([refused.rcode, refused.ede], ['SERVFAIL', 14])
      answer()
      assert.equal((await late).rcode, 'NOERROR')
      await tcp.atLeast(1)
      assert.equal(readAnswer(tcp.received[0] ?? Buffer.alloc(12)).rcode, 'NOERROR')
      assert.equal((await daemon.process.ended(30_000))?.code, 0)
      for (const each of [client, tcp]) each.close()
    })
  })

  test('run gives up queries without an answer, and a second signal ends it at once', async () => {
    await withParts(async ({ folder, start }) => {
      const daemon = await folder.serve()
      start(daemon.process)
      const client = await daemon.client()
      upstream.behaviour = silent
      const seen = upstream.queries.length
      const never = client.ask('never.example')
      await until('it is asked', () => upstream.queries.length > seen)
      daemon.process.kill('SIGTERM')
      await daemon.process.untilOutput(/stopping/)
      daemon.process.kill('SIGTERM')
      const told = await never
      assert.deepEqual([told.rcode, told.ede], ['SERVFAIL', 14])
      assert.equal((await daemon.process.ended(3000))?.code, 0)
      client.close()
    })
  })
})

function activateSkip(): string | false {
  return existsSync('/usr/bin/systemd-socket-activate')
    ? false
    : 'systemd-socket-activate is not installed'
}
