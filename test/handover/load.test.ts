// Take-overs and restarts under load: clients ask at a steady rate, each from one port and each query once, and every
// query is answered. A few rounds at a small rate; NAMEGATE_HANDOVER=ROUNDS,UDP,TCP (such as 50,20000,1000) does more.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isBuilt } from '../../src/native/native.ts'
import { until } from '../support/client.ts'
import { endpointsText, policyText } from '../support/daemon-files.ts'
import { DaemonFolder, freePort, NEEDS_ROOT, PROGRAM } from '../support/daemon-process.ts'
import { LabProcess } from '../support/lab-process.ts'
import { canUseSteadyDns } from '../support/steady-dns.ts'
import { Supervise } from '../support/supervise.ts'

const skip = isBuilt('udp') ? (canUseSteadyDns() ?? NEEDS_ROOT) : 'no native part'
const [ROUNDS = 2, UDP_RATE = 2000, TCP_RATE = 200] = (
  process.env['NAMEGATE_HANDOVER']?.split(',') ?? []
).map(Number)
const CLIENTS = 8
const SECONDS_PER_ROUND = process.env['NAMEGATE_HANDOVER'] === undefined ? 4 : 5

let supervise: Supervise
let upstreamPort = 0
const parts: LabProcess[] = []

function start(command: string, args: readonly string[], cwd?: string): LabProcess {
  const child = new LabProcess(command, args, cwd === undefined ? {} : { cwd })
  parts.push(child)
  return child
}

function tool(name: string): string {
  return `${supervise.folder}/${name}`
}

before(async () => {
  if (skip !== false) return
  supervise = new Supervise()
  for (const name of ['steady-dns', 'steady-tcp']) {
    const source = fileURLToPath(new URL(`../support/${name}.c`, import.meta.url))
    execFileSync('gcc', ['-O2', '-o', tool(name), source])
  }
  upstreamPort = await freePort()
  const servers = [
    start(tool('steady-dns'), ['serve', '127.0.0.1', `${upstreamPort}`, '0', '0']),
    start(tool('steady-tcp'), ['serve', '127.0.0.1', `${upstreamPort}`]),
  ]
  for (const server of servers) await server.untilOutput(/^ready$/m)
})

after(async () => {
  for (const child of parts.reverse()) await child.stop()
  if (skip === false) supervise.close()
})

async function makeFolder(): Promise<{ folder: DaemonFolder; port: number }> {
  const port = await freePort()
  const folder = new DaemonFolder({
    files: {
      'policy.yaml': policyText('web', ['*.test', '*.*.test']),
      'endpoints.yaml': endpointsText({ one: '127.0.0.1' }),
    },
    config: {
      listeners: `[{ address: 127.0.0.1, port: ${port} }]`,
      upstreams: `{ servers: ["127.0.0.1:${upstreamPort}"] }`,
      limits: '{ queries-in-flight-per-client: 65536 }',
    },
  })
  return { folder, port }
}

/** Clients that ask for so long; what became of their queries. */
function begin(port: number, seconds: number): LabProcess[] {
  const share = `${Math.max(1, Math.round(UDP_RATE / CLIENTS))}`
  const udp = Array.from({ length: CLIENTS }, (_, i) =>
    start(tool('steady-dns'), ['load', '127.0.0.1', `${port}`, share, `${seconds}`, `u${i}`]),
  )
  const args = ['load', '127.0.0.1', `${port}`, `${TCP_RATE}`, `${seconds}`, 't', '8']
  return [...udp, start(tool('steady-tcp'), args)]
}

interface Counts {
  sent: number
  noerror: number
  slowestMs: number
  closed: number
}

async function finish(
  clients: readonly LabProcess[],
  seconds: number,
): Promise<readonly [udp: Counts, tcp: Counts]> {
  const udp: Counts = { sent: 0, noerror: 0, slowestMs: 0, closed: 0 }
  const tcp: Counts = { ...udp }
  for (const [i, client] of clients.entries()) {
    const ended = await client.ended(seconds * 1000 + 30_000)
    assert.ok(ended !== undefined && ended.stdout !== '', `a client ended with ${client.stderr}`)
    const result: unknown = JSON.parse(ended.stdout)
    const entries = new Map(
      Object.entries(typeof result === 'object' && result !== null ? result : {}),
    )
    const number = (name: string): number => Number(entries.get(name) ?? 0)
    const counts = i < CLIENTS ? udp : tcp
    counts.sent += number('sent')
    counts.noerror += number('noerror')
    counts.closed += number('closed')
    counts.slowestMs = Math.max(counts.slowestMs, number('max') / 1000)
  }
  return [udp, tcp]
}

describe('namegate under load', { skip }, () => {
  test('run --take-over loses no query, again and again', async (t) => {
    const { folder, port } = await makeFolder()
    try {
      let daemon = start(PROGRAM, ['run', '--config', 'namegate.yaml'], folder.path)
      await daemon.untilOutput(/namegate serves/, 60_000)
      const seconds = ROUNDS * SECONDS_PER_ROUND
      const clients = begin(port, seconds)
      let rounds = 0
      for (; rounds < ROUNDS && clients.some(({ running }) => running); rounds++) {
        await sleep(1000)
        const next = start(
          PROGRAM,
          ['run', '--take-over', '--config', 'namegate.yaml'],
          folder.path,
        )
        await next.untilOutput(/namegate serves/, 60_000)
        assert.equal((await daemon.ended(20_000))?.code, 0, daemon.stderr)
        daemon = next
      }
      const [udp, tcp] = await finish(clients, seconds)
      t.diagnostic(`${rounds} take-overs; UDP ${JSON.stringify(udp)}; TCP ${JSON.stringify(tcp)}`)
      assert.deepEqual([udp.noerror, tcp.noerror], [udp.sent, tcp.sent])
      assert.equal(tcp.closed, 0)
      await daemon.stop()
    } finally {
      folder.remove()
    }
  })

  test('run behind passed sockets loses no query of UDP when it is started again', async (t) => {
    const { folder, port } = await makeFolder()
    try {
      const sockets = [`udp:127.0.0.1:${port}`, `tcp:127.0.0.1:${port}`]
      const gate = supervise.activate(folder, sockets)
      parts.push(gate)
      const served = (): number => gate.stderr.split('namegate serves').length - 1
      await until('it serves', () => served() > 0, 60_000)
      const seconds = ROUNDS * SECONDS_PER_ROUND
      const clients = begin(port, seconds).slice(0, CLIENTS)
      let rounds = 0
      for (; rounds < ROUNDS && clients.some(({ running }) => running); rounds++) {
        await sleep(1000)
        const pid = [...gate.stdout.matchAll(/started (\d+)/g)].at(-1)?.[1]
        process.kill(Number(pid), 'SIGTERM')
        await until('it serves again', () => served() > rounds + 1, 60_000)
      }
      const [udp] = await finish(clients, seconds)
      t.diagnostic(`${rounds} restarts; UDP ${JSON.stringify(udp)}`)
      assert.equal(udp.noerror, udp.sent)
    } finally {
      folder.remove()
    }
  })
})
