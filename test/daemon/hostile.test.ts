// Random octets for a running process, from clients over both transports, from the upstream and at the metrics port. The process continues,
// answers what it can answer, and learns nothing.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, afterEach, before, describe, test } from 'node:test'
import { http } from '../support/nodes/admin.ts'
import { TcpClient, UdpClient } from '../support/peers/client.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { DaemonFolder, type RunningDaemon } from '../support/nodes/daemon-process.ts'
import { freePort } from '../support/nodes/free-port.ts'
import { readAnswer } from '../support/peers/dns-client.ts'
import { Random } from '../support/models/random.ts'
import { answering, answerTo, FakeUpstream, queryFor } from '../support/peers/upstream.ts'

const SEED = 20_260_102
const MESSAGES = 4000
const CONNECTIONS = 60
const ALLOWED = 'a.example'

let upstream: FakeUpstream
let folder: DaemonFolder
let daemon: RunningDaemon
let metrics: number

before(async () => {
  upstream = await FakeUpstream.start()
  upstream.forgetful = true
  metrics = await freePort()
  folder = new DaemonFolder({
    files: {
      'policy.yaml': policyText('web', [ALLOWED]),
      'endpoints.yaml': endpointsText({ me: '127.0.0.1' }),
    },
    config: {
      upstreams: `{ servers: ["127.0.0.1:${upstream.port}"], timeout: 1s }`,
      metrics: `{ address: 127.0.0.1, port: ${metrics} }`,
    },
  })
  daemon = await folder.serve()
})

after(async () => {
  await daemon.process.stop()
  await upstream.stop()
  folder.remove()
})

/** After every test, the same process answers on both transports, and has logged no bug. */
afterEach(async () => {
  upstream.behaviour = answering
  assert.ok(daemon.process.running, daemon.process.stderr)
  const udp = await UdpClient.open(daemon.port)
  const tcp = await TcpClient.open(daemon.port)
  for (const client of [udp, tcp]) {
    for (const [name, rcode] of [
      [ALLOWED, 'NOERROR'],
      ['other.example', 'REFUSED'],
    ] as const) {
      const [answer = Buffer.alloc(0)] = await client.ask(queryFor(name, { id: 7 }))
      assert.equal(readAnswer(answer).rcode, rcode)
    }
  }
  udp.close()
  tcp.close()
  assert.doesNotMatch(daemon.process.stderr, /request failed|invariant|Error:|\bat \S+\.ts/)
})

/** Random octets, or a valid query with some of them changed, cut or appended. */
function spoiled(random: Random): Buffer {
  if (random.oneIn(3)) return Buffer.from(random.octets(random.below(random.oneIn(9) ? 1500 : 64)))
  const name = random.pick([ALLOWED, 'other.example', 'x'.repeat(63)])
  const query = queryFor(name, random.oneIn(2) ? { udpSize: random.below(0x10000) } : {})
  for (let i = random.below(4); i > 0; i--) query[random.below(query.length)] = random.below(256)
  if (random.oneIn(4)) return query.subarray(0, random.below(query.length))
  return random.oneIn(4) ? Buffer.concat([query, random.octets(random.below(40))]) : query
}

describe('namegate run', () => {
  test('outlives any octets over UDP', async () => {
    const random = new Random(SEED)
    const client = await UdpClient.open(daemon.port)
    for (let i = 0; i < MESSAGES; i++) {
      client.send(spoiled(random))
      if (i % 100 === 0) await sleep(2)
    }
    client.close()
  })

  test('outlives any octets, cut frames and resets over TCP', async () => {
    const random = new Random(SEED + 1)
    for (let i = 0; i < CONNECTIONS; i++) {
      const client = await TcpClient.open(daemon.port)
      for (let n = random.below(20); n > 0; n--) client.send(spoiled(random))
      client.socket.write(random.octets(random.below(200)))
      await sleep(random.below(4))
      if (random.oneIn(2)) client.socket.resetAndDestroy()
      else client.close()
    }
  })

  test('outlives an upstream that damages its answers, and learns nothing from them', async () => {
    const random = new Random(SEED + 2)
    upstream.behaviour = (query) => {
      const answer = answerTo(query, { addresses: ['198.51.100.9'], ttl: 600 })
      const kind = random.below(4)
      if (kind === 0) return query.send(random.octets(random.below(200)))
      if (kind === 1) return query.send(answer.subarray(0, random.below(answer.length)))
      // In the count of questions or in the question, and more than its letter case: never a valid answer.
      const at = kind === 2 ? 4 + random.below(2) : 12 + random.below(8)
      answer[at] = (answer[at] ?? 0) ^ random.pick([1, 2, 4, 8, 16, 64, 128])
      query.send(answer)
      if (query.transport === 'tcp' && random.oneIn(4)) query.hangUp()
    }
    const client = await UdpClient.open(daemon.port)
    for (let i = 0; i < 400; i++) {
      client.send(queryFor(ALLOWED, { id: i }))
      if (i % 20 === 0) await sleep(5)
    }
    await client.atLeast(400)
    client.close()
    const cache = (await daemon.get('/v1/ipcache')).text
    assert.doesNotMatch(cache, /198\.51\.100\.9/)
  })

  test('outlives any octets at the metrics port and the admin socket', async () => {
    const random = new Random(SEED + 3)
    for (const where of [{ port: metrics, host: '127.0.0.1' }, { path: folder.in('admin.sock') }]) {
      for (let i = 0; i < 20; i++) {
        const socket = connect(where)
        socket.on('error', () => undefined)
        const head = random.pick([
          '',
          'GET /',
          'POST /v1/audit HTTP/1.1\r\nContent-Length: 9\r\n\r\n',
        ])
        socket.write(Buffer.concat([Buffer.from(head), random.octets(random.below(300))]))
        await sleep(2)
        socket.destroy()
      }
    }
    assert.equal((await http({ port: metrics }, '/healthz')).status, 200)
    assert.equal((await daemon.get('/v1/status')).status, 200)
  })
})
