// What the clients and flows of a pod notice while its cluster fails under load: nothing. The servers are killed, etcd forgets its history,
// the daemon starts without them, the definition of the policies is deleted, and the wall clock jumps. The load asks for more
// names than `limits.names-per-wildcard` allows. Takes minutes, so it runs with NAMEGATE_KILLS=1; NAMEGATE_KILLS=10 repeats the kills.

import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { canUseControlPlane, ControlPlane } from '../../support/labs/control-plane.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { DNS_4, podLab, type Pod, type PodLab } from '../../support/labs/lab-pod.ts'
import { PROGRAM } from '../../support/nodes/daemon-process.ts'
import { readExposition } from '../../support/nodes/metrics.ts'
import { DAY_MS, ShiftedClock } from '../../support/peers/shifted-clock.ts'
import { canUseSteadyDns } from '../../support/peers/steady-dns.ts'
import { SteadyLoad, type LoadCount } from '../../support/peers/steady-load.ts'
import { UdpStream } from '../../support/peers/udp-stream.ts'

const NODE = 'node-a'
const POLICIES = '/apis/cilium.io/v2/namespaces/shop/ciliumnetworkpolicies'
const DEFINITION =
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ciliumnetworkpolicies.cilium.io'
const [SITE, ALLOWED_PORT, CLOSED_PORT] = ['www.site.test', 7001, 7009]
const RATES = { udpRate: 500, tcpRate: 10, flows: 500 }
const KILLS = Number(process.env['NAMEGATE_KILLS'] ?? 1)
const LIMIT_MS = 90_000
/** As long as removed policies stay in force at least. */
const WINDOW_MS = KILLS > 1 ? 12_000 : 1000
/** How long a client waits before it asks again. */
const RETRY_MS = 1000

const LONG =
  process.env['NAMEGATE_KILLS'] === undefined ? 'takes minutes: set NAMEGATE_KILLS=1' : undefined
const skip = canUseNamegate() ?? canUseControlPlane() ?? canUseSteadyDns() ?? LONG ?? false

void describe('a node under load whose cluster fails', { skip, timeout: 900_000 }, () => {
  const clock = new ShiftedClock()
  const load = new SteadyLoad()
  let lab: PodLab
  let pod: Pod
  let cluster: ControlPlane
  let namegate: Namegate
  let endpoints: unknown

  before(async () => {
    lab = podLab()
    pod = lab.pods[0]!
    await load.serve(lab.internet, DNS_4)
    cluster = new ControlPlane(lab.node)
    await cluster.start()
    await cluster.request('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    for (const name of ['a', 'b', 'c']) await cluster.request('POST', POLICIES, policy(name))
    const addresses = [pod.address4, pod.address6]
    const labels = { app: 'web' }
    await cluster.addPod({ namespace: 'shop', name: 'web', node: NODE, addresses, labels })
    namegate = new Namegate(lab, {
      policies: {},
      endpoints: [],
      config: [
        'metrics: { address: 127.0.0.1, port: 9465 }',
        `kubernetes: { kubeconfig: '${cluster.kubeconfig}', node: ${NODE}, spread: 1s }`,
      ].join('\n'),
    })
    await namegate.start({ command: clock.program(PROGRAM) })
    await untilWatching()
    endpoints = await endpointRows()
  })
  after(async () => {
    await namegate?.close()
    await cluster?.close()
    await lab.close()
    clock.close()
  })

  function policy(name: string) {
    const ports = [{ port: String(ALLOWED_PORT), protocol: 'UDP' }]
    return {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumNetworkPolicy',
      metadata: { name },
      spec: {
        endpointSelector: { matchLabels: { app: 'web' } },
        egress: [{ toFQDNs: [{ matchPattern: '**.test' }], toPorts: [{ ports }] }],
      },
    }
  }

  /** Endpoints with what a new endpoint would not have: the number of the one before. */
  async function endpointRows(): Promise<unknown> {
    const rows = (await namegate.get('endpoints')) as readonly {
      readonly id: number
      readonly name: string
      readonly enforcing: boolean
    }[]
    return rows.map(({ id, name, enforcing }) => ({ id, name, enforcing }))
  }

  async function metric(name: string): Promise<ReadonlyMap<string, number>> {
    const { stdout } = await lab.node.run('curl', ['-s', 'http://127.0.0.1:9465/metrics'])
    const { samples } = readExposition(stdout)
    return new Map([...samples].filter(([key, value]) => key.startsWith(name) && value > 0))
  }

  /** Lists that were begun, by cause. */
  async function lists(): Promise<string> {
    const found = await metric('namegate_kubernetes_lists_total')
    return [...found].map(([key, n]) => `${/"(.*)"/.exec(key)?.[1]} ${n}`).join(', ')
  }

  /** Waits until a kind has the state; without a kind, until all that the cluster has are watched. */
  async function untilState(state: string, kind?: string): Promise<void> {
    for (const end = performance.now() + LIMIT_MS; ; await sleep(100)) {
      const { kubernetes } = (await namegate.status()) as {
        kubernetes: { collections: readonly { kind: string; state: string }[] }
      }
      const { collections } = kubernetes
      const asked = collections.filter((each) =>
        kind === undefined ? each.state !== 'absent' : each.kind === kind,
      )
      if (asked.every((each) => each.state === state)) return
      assert.ok(performance.now() < end, JSON.stringify(collections))
    }
  }

  const untilWatching = async (): Promise<void> => await untilState('watching')

  /** Runs something under load. No datagram that policy allows is lost, and none that it denies passes. Returns what clients got. */
  async function underLoad(
    t: TestContext,
    run: () => Promise<void>,
    retryMs?: number,
  ): Promise<readonly [udp: LoadCount, tcp: LoadCount]> {
    const { stdout } = await pod.host.run('dig', ['+short', `@${pod.gateway4}`, SITE])
    const address = stdout.trim()
    const flows = await UdpStream.start({
      from: pod.host,
      to: lab.internet,
      rate: RATES.flows,
      sockets: 4,
      targets: [
        { address, port: ALLOWED_PORT, isAllowed: true },
        { address, port: CLOSED_PORT, isAllowed: false },
      ],
    })
    const retry = retryMs === undefined ? {} : { retryMs }
    load.begin({
      host: pod.host,
      server: pod.gateway4,
      ...RATES,
      keepsConnections: false,
      ...retry,
    })
    await sleep(500)
    await run()
    await sleep(500)
    const [udp, tcp] = await load.stop()
    const { seconds, sent, lost, gaps, forbidden, passed } = await flows.stop()
    t.diagnostic(
      `${seconds.toFixed(0)} s: queries ${udp.sent}, lost ${udp.sent - udp.answered - udp.refused}, refused ${udp.refused}, asked again ${udp.retried}; over TCP ${tcp.sent}, lost ${tcp.sent - tcp.answered - tcp.refused}, refused ${tcp.refused}, asked again ${tcp.retried} (at most ${tcp.mostRetries} times) after connections that were not opened ${tcp.unopened}, closed ${tcp.ended}, silent ${tcp.silent}; allowed datagrams ${sent}, lost ${lost} (${gaps}); denied ${forbidden}, passed ${passed}; lists: ${await lists()}`,
    )
    assert.ok(sent > 0 && forbidden > 0)
    assert.deepEqual([lost, passed], [0, 0])
    assert.deepEqual(await endpointRows(), endpoints)
    for (const { answered, refused, sent: asked } of [udp, tcp]) {
      // A daemon that stops refuses what it still has to answer.
      assert.equal(answered + (retryMs === undefined ? 0 : refused), asked)
    }
    return [udp, tcp]
  }

  it('loses nothing when both servers are killed and start again', async (t) => {
    await underLoad(t, async () => {
      for (let i = 0; i < KILLS; i++) {
        await cluster.kill('apiserver')
        await cluster.kill('etcd')
        await untilState('away', 'Pod')
        await cluster.again('etcd')
        await cluster.again('apiserver')
        await untilWatching()
      }
    })
  })

  it('loses nothing when etcd has forgotten the versions that the node knows', async (t) => {
    const expired = async (): Promise<number> => {
      const [count] = await metric('namegate_kubernetes_lists_total{cause="expired"}')
      return count?.[1] ?? 0
    }
    const before = await expired()
    await underLoad(t, async () => {
      for (let i = 0; i < KILLS; i++) {
        await cluster.kill('apiserver')
        await cluster.compact()
        await cluster.again('apiserver')
        await untilState('away', 'Pod')
        await untilWatching()
      }
    })
    assert.ok((await expired()) > before, 'a compaction forces lists')
  })

  // Nothing listens while no daemon runs, and a connection ends with its process. A client that asks again is answered by the next daemon.
  it('loses nothing when the daemon starts without the servers', async (t) => {
    await cluster.kill('apiserver')
    await cluster.kill('etcd')
    try {
      const [udp, tcp] = await underLoad(
        t,
        async () => {
          for (let i = 0; i < KILLS; i++) {
            await namegate.stop()
            await namegate.start({ command: clock.program(PROGRAM) })
          }
        },
        RETRY_MS,
      )
      assert.ok(udp.retried > 0 && tcp.retried > 0, 'queries found no daemon')
    } finally {
      await cluster.again('etcd')
      await cluster.again('apiserver')
      await untilWatching()
    }
  })

  it('loses nothing and asks nothing when the wall clock jumps by a day and back', async (t) => {
    // Lists of kinds that the cluster does not have begin after growing waits.
    const due = async (): Promise<string> => (await lists()).replace(/(, )?appeared \d+/, '')
    const before = await due()
    await underLoad(t, async () => {
      for (const shift of [DAY_MS, -DAY_MS, 0]) {
        clock.set(shift)
        await sleep(1000)
        assert.deepEqual((await namegate.status())['ready'], true)
      }
    })
    assert.equal(await due(), before)
    await untilWatching()
  })

  it('opens nothing when the definition of its policies is deleted', async (t) => {
    await underLoad(t, async () => {
      await cluster.request('DELETE', DEFINITION)
      await untilState('held', 'CiliumNetworkPolicy')
      await sleep(WINDOW_MS)
    })
  })
})
