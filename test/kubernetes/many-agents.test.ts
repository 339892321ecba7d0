// Many nodes that lose the API server at one moment, and come back after their versions were compacted: every collection of every node is
// listed again. Prints how many requests the server answers in each second. NAMEGATE_AGENTS=1000 is the size of a large cluster; the outage
// then takes as long as it takes until the waits between attempts have grown to their bound. Runs with NAMEGATE_AGENTS=20 at least.
// NAMEGATE_AGENTS_SERVER=fake measures with the fake server, which answers faster than the real one on a small machine.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { LabProcess } from '../support/labs/lab-process.ts'
import { programArgs } from '../support/labs/program.ts'
import { NO_OPENSSL } from '../support/kubernetes/certificates.ts'
import type { Cluster } from '../support/kubernetes/cluster.ts'
import { NO_TESTBED, startTestbed } from '../support/kubernetes/testbed.ts'

const AGENTS = Number(process.env['NAMEGATE_AGENTS'] ?? 20)
const IS_LONG = AGENTS > 100
const IS_FAKE = process.env['NAMEGATE_AGENTS_SERVER'] === 'fake'
const skip =
  (IS_FAKE ? NO_OPENSSL : NO_TESTBED) ||
  (process.env['NAMEGATE_AGENTS'] === undefined && 'takes a minute: set NAMEGATE_AGENTS=20')
const PROCESSES = IS_LONG ? 4 : 2
const OUTAGE_MS = IS_LONG ? 45_000 : 1000
const NAMES = 'pods,network-policies,cilium-policies'
const SPREADS_S = IS_LONG ? [0, 60] : [1]
const [POLICIES, PODS] = [100, 100]
const LIMIT_MS = IS_LONG ? 600_000 : 60_000
const PROGRAM = fileURLToPath(new URL('../support/kubernetes/agents.ts', import.meta.url))
const FAKE_SERVER = fileURLToPath(new URL('../support/kubernetes/fake-server.ts', import.meta.url))
const TICKS_PER_SECOND = 100
const PAGE = 4096

interface Use {
  readonly cpuSeconds: number
  readonly residentMb: number
}

/** What a process has used so far. */
function useOf(pid: number): Use {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  const ticks = Number(fields[11]) + Number(fields[12])
  return {
    cpuSeconds: ticks / TICKS_PER_SECOND,
    residentMb: (Number(fields[21]) * PAGE) / 1e6,
  }
}

/** The numbers of all lines that begin with a word. */
function linesOf(processes: readonly LabProcess[], word: string): readonly (readonly number[])[] {
  return processes
    .flatMap(({ stdout }) => stdout.split('\n'))
    .filter((line) => line.startsWith(`${word} `))
    .map((line) => line.split(' ').slice(1).map(Number))
}

/** The server that the agents follow. */
interface Server {
  readonly origin: string
  readonly pid: number
  /** Breaks all connections, as a crash does, and makes every known version too old. */
  fail(): Promise<void>
  /** Serves again. */
  again(): void
  stop(): Promise<void>
}

async function fakeServer(): Promise<Server> {
  const args = programArgs(FAKE_SERVER, String(POLICIES), String(PODS))
  const server = new LabProcess(process.execPath, args)
  const [, origin = ''] = await server.untilOutput(/^ready (\S+)$/m)
  return {
    origin,
    pid: server.pid,
    fail: async () => await Promise.resolve(server.kill('SIGHUP')),
    again: () => server.kill('SIGUSR2'),
    stop: async () => await server.stop(),
  }
}

async function realServer(): Promise<Server> {
  const testbed = await startTestbed()
  if (typeof testbed === 'string') throw new Error(testbed)
  const [cluster] = testbed.clusters
  assert.ok(cluster)
  await fill(cluster)
  return {
    origin: cluster.access('admintoken').origin,
    get pid() {
      return testbed.pid
    },
    async fail() {
      testbed.kill()
      await cluster.compact()
    },
    again: () => testbed.again(),
    stop: async () => await testbed.stop(),
  }
}

async function fill(cluster: Cluster): Promise<void> {
  const shop = '/namespaces/shop'
  await cluster.write('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
  const spec = { endpointSelector: {}, egress: [{ toFQDNs: [{ matchName: 'www.example.com' }] }] }
  for (let i = 0; i < POLICIES; i++) {
    const body = { apiVersion: 'cilium.io/v2', kind: 'CiliumNetworkPolicy', spec }
    const metadata = { name: `p${i}` }
    const path = `/apis/cilium.io/v2${shop}/ciliumnetworkpolicies`
    assert.equal(await cluster.write('POST', path, { ...body, metadata }), 201)
  }
  for (let i = 0; i < PODS; i++) {
    const podSpec = { nodeName: `node-${i}`, containers: [{ name: 'a', image: 'a' }] }
    const body = { metadata: { name: `p${i}` }, spec: podSpec }
    assert.equal(await cluster.write('POST', `/api/v1${shop}/pods`, body), 201)
  }
}

const TITLE = `many nodes on ${IS_FAKE ? 'a fast server' : 'the real API server'}`
void describe(TITLE, { skip, timeout: 1_800_000 }, () => {
  let server: Server
  let agents: readonly LabProcess[] = []

  before(async () => {
    server = await (IS_FAKE ? fakeServer() : realServer())
  })
  after(async () => {
    await Promise.all(agents.map(async (each) => await each.stop()))
    await server?.stop()
  })

  /** Waits until every agent has listed everything so often. Returns when the last one had. */
  async function untilListed(times: number): Promise<number> {
    for (const end = performance.now() + LIMIT_MS; ; await sleep(200)) {
      const listed = linesOf(agents, 'listed').filter(([time]) => time === times)
      if (listed.length >= AGENTS) return Math.max(...listed.map(([, at]) => at ?? 0))
      for (const each of agents) assert.ok(each.running, each.stderr)
      assert.ok(performance.now() < end, `${listed.length} of ${AGENTS} have listed`)
    }
  }

  for (const spread of SPREADS_S) {
    it(`all come back within spread ${spread} s and the time of their lists`, async (t) => {
      const share = AGENTS / PROCESSES
      agents = Array.from({ length: PROCESSES }, (_, i) => {
        const args = [server.origin, i * share, share, spread * 1000, NAMES].map(String)
        return new LabProcess(process.execPath, [...programArgs(PROGRAM, ...args)])
      })
      await untilListed(1)
      await server.fail()
      await sleep(OUTAGE_MS)
      const began = Date.now()
      server.again()
      const before = useOf(server.pid)
      let residentMb = 0
      const watching = setInterval(() => {
        residentMb = Math.max(residentMb, useOf(server.pid).residentMb)
      }, 500)
      const last = await untilListed(2).finally(() => clearInterval(watching))
      await sleep(2000)
      const cpu = useOf(server.pid).cpuSeconds - before.cpuSeconds
      await Promise.all(agents.map(async (each) => await each.stop()))
      const bySecond = new Map<number, number>()
      let [refused, lost] = [0, 0]
      for (const [second = 0, answered = 0, no = 0, gone = 0] of linesOf(agents, 'second')) {
        if (second < Math.floor(began / 1000) || second > last / 1000) continue
        bySecond.set(second, (bySecond.get(second) ?? 0) + answered + no)
        refused += no
        lost += gone
      }
      const all = [...bySecond].toSorted(([a], [b]) => a - b)
      const rates = all.map(([, n]) => n)
      const sum = rates.reduce((total, n) => total + n, 0)
      const first = all.find(([, n]) => n > 0)?.[0] ?? 0
      const mean = sum / Math.max(1, last / 1000 - first)
      t.diagnostic(
        `${AGENTS} agents, spread ${spread} s, outage ${OUTAGE_MS / 1000} s: ${sum} requests, peak ${Math.max(...rates)}/s, mean ${mean.toFixed(0)}/s, 429: ${refused}, lost ${lost}; first answer after ${(first - began / 1000).toFixed(0)} s, last agent current after ${((last - began) / 1000).toFixed(1)} s; server ${cpu.toFixed(1)} CPU-s, at most ${residentMb.toFixed(0)} MB`,
      )
      t.diagnostic(`requests by second: ${rates.join(' ')}`)
      assert.ok(sum > 0)
    })
  }
})
