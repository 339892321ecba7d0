// A daemon over the memory datapath that reads a cluster of the real API server: how long it takes until it is ready, what it needs then, and
// how long a changed policy takes until it is enforced. Prints the figures. NAMEGATE_CLUSTER=10000 makes so many CiliumNetworkPolicies, half
// as many namespaces, and 500 pods, which have no interface on this machine. Runs with NAMEGATE_CLUSTER=10 at least.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { NO_TESTBED, startTestbed, type Testbed } from '../support/kubernetes/testbed.ts'
import { DaemonFolder, type RunningDaemon } from '../support/nodes/daemon-process.ts'
import { freePort } from '../support/nodes/free-port.ts'
import { readExposition } from '../support/nodes/metrics.ts'

const POLICIES = Number(process.env['NAMEGATE_CLUSTER'] ?? 10)
const IS_LONG = POLICIES > 1000
const skip =
  NO_TESTBED ||
  (process.env['NAMEGATE_CLUSTER'] === undefined && 'takes a minute: set NAMEGATE_CLUSTER=10')
const NAMESPACES = POLICIES / 2
const PODS = IS_LONG ? 500 : 10
const CHANGES = IS_LONG ? 40 : 5
const QUIET_MS = IS_LONG ? 60_000 : 500
const WRITERS = 16
const LIMIT_MS = 120_000
const TIMES = 'namegate_kubernetes_enforcement_seconds'
const TICK_MS = 10
const PAGE = 4096

function statOf(pid: number): { readonly cpuMs: number; readonly residentMb: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  const cpuMs = (Number(fields[11]) + Number(fields[12])) * TICK_MS
  return { cpuMs, residentMb: (Number(fields[21]) * PAGE) / 1e6 }
}

function policy(i: number, version: number) {
  const toFQDNs = [{ matchName: `v${version}.p${i}.test` }, { matchPattern: `*.p${i}.test` }]
  return {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNetworkPolicy',
    metadata: { name: `p${i}` },
    spec: { endpointSelector: {}, egress: [{ toFQDNs }] },
  }
}

const policiesOf = (i: number): string =>
  `/apis/cilium.io/v2/namespaces/ns${i % NAMESPACES}/ciliumnetworkpolicies`

void describe('a cluster of the real API server', { skip, timeout: 1_800_000 }, () => {
  let testbed: Testbed
  let folder: DaemonFolder
  let daemon: RunningDaemon | undefined
  let metricsPort: number

  before(async () => {
    const started = await startTestbed()
    if (typeof started === 'string') throw new Error(started)
    testbed = started
    await many(NAMESPACES, async (i) => {
      return await write('/api/v1/namespaces', { metadata: { name: `ns${i}` } })
    })
    await many(POLICIES, async (i) => await write(policiesOf(i), policy(i, 0)))
    await many(PODS, async (i) => {
      const containers = [{ name: 'a', image: 'a' }]
      const body = { metadata: { name: `p${i}` }, spec: { nodeName: 'n', containers } }
      return await write(`/api/v1/namespaces/ns${i % NAMESPACES}/pods`, body)
    })
    metricsPort = await freePort()
    folder = new DaemonFolder({
      config: {
        policies: '{ paths: [] }',
        endpoints: '{ files: [] }',
        datapath: '{ kind: memory }',
        metrics: `{ address: 127.0.0.1, port: ${metricsPort} }`,
        kubernetes: '{ kubeconfig: kubeconfig, node: n }',
      },
    })
    const { origin } = testbed.clusters[0]!.access('admintoken')
    folder.write(
      'kubeconfig',
      `apiVersion: v1
kind: Config
clusters: [{ name: t, cluster: { server: '${origin}', insecure-skip-tls-verify: true } }]
users: [{ name: admin, user: { token: admintoken } }]
contexts: [{ name: t, context: { cluster: t, user: admin } }]
current-context: t
`,
    )
  })
  after(async () => {
    await daemon?.process.stop()
    folder?.remove()
    await testbed?.stop()
  })

  async function write(path: string, body: unknown): Promise<number> {
    return await testbed.clusters[0]!.write('POST', path, body)
  }

  async function many(count: number, make: (i: number) => Promise<number>): Promise<void> {
    let next = 0
    const writer = async (): Promise<void> => {
      while (next < count) assert.equal(await make(next++), 201)
    }
    await Promise.all(Array.from({ length: WRITERS }, writer))
  }

  /** Waits until the daemon knows as many objects of the kind, and all is in force. */
  async function untilKnown(kind: string, count: number): Promise<void> {
    for (const end = performance.now() + LIMIT_MS; ; await sleep(20)) {
      const { kubernetes } = (await daemon!.status().catch(() => ({}))) as {
        kubernetes?: { collections: readonly { kind: string; objects: number; state: string }[] }
      }
      const found = kubernetes?.collections.find((each) => each.kind === kind)
      if (found?.state === 'watching' && found.objects >= count) return
      assert.ok(performance.now() < end, JSON.stringify(found))
    }
  }

  /** Number of changes of policies that were enforced, and their times in milliseconds. */
  async function enforced(): Promise<readonly [count: number, ms: number]> {
    const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`)
    const { samples } = readExposition(await response.text())
    const of = (part: string): number => samples.get(`${TIMES}_${part}{kind="policy"}`) ?? NaN
    return [of('count'), of('sum') * 1000]
  }

  it('is read and followed', async (t) => {
    const began = performance.now()
    daemon = folder.spawn()
    await daemon.process.untilOutput(/namegate serves/, LIMIT_MS)
    await untilKnown('CiliumNetworkPolicy', POLICIES)
    await untilKnown('Namespace', NAMESPACES)
    const knownMs = performance.now() - began
    while ((await enforced())[0] === 0) await sleep(20)
    const readyMs = performance.now() - began
    const { pid } = daemon.process
    await sleep(QUIET_MS)
    const before = statOf(pid)
    await sleep(QUIET_MS)
    const quiet = statOf(pid)
    const [counted, ms] = await enforced()
    for (let i = 1; i <= CHANGES; i++) {
      const path = `${policiesOf(i % 5)}/p${i % 5}`
      const code = await testbed.clusters[0]!.write('PATCH', path, policy(i % 5, i))
      assert.equal(code, 200)
      while ((await enforced())[0] < counted + i) await sleep(5)
    }
    const mean = ((await enforced())[1] - ms) / CHANGES
    t.diagnostic(
      `${POLICIES} policies, ${NAMESPACES} namespaces, ${PODS} pods: known after ${(knownMs / 1000).toFixed(1)} s, enforced after ${(readyMs / 1000).toFixed(1)} s; then ${quiet.residentMb.toFixed(0)} MB; ${quiet.cpuMs - before.cpuMs} ms of CPU in ${QUIET_MS / 1000} quiet seconds; a changed policy is enforced after ${mean.toFixed(1)} ms`,
    )
  })
})
