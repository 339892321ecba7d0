// Any number of short flows of another endpoint evicts no open connection: an idle TCP connection, a busy one, and a UDP flow like QUIC,
// each ten times longer than TTL and grace. Established TCP is in a table without eviction, and a busy flow is never the least recently
// used. So their addresses stay, and are forgotten in the stated time after the end. NAMEGATE_SHORT_FLOWS=1000000 makes that many flows.
// A flow here: a UDP datagram whose (source port, address) no other has, or a TCP connection that is made and closed;
// all are real packets of the pod to addresses that its policy allows, two thirds IPv4, one third IPv6.
// That is eight times what the table for short flows holds.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { KernelMap } from '../../../src/datapath/ebpf/maps/kernel-map.ts'
import { MAP_SHAPES } from '../../../src/datapath/ebpf/maps/layout.ts'
import { loadBpf } from '../../../src/native/native.ts'
import { http } from '../../support/nodes/admin.ts'
import { IdleConnection } from '../../support/peers/idle.ts'
import type { Host } from '../../support/labs/lab.ts'
import { compiled } from '../../support/peers/compiled.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { startEcho, startEchoUdp, Talk } from '../../support/peers/traffic.ts'

const FLOWS = Number(process.env['NAMEGATE_SHORT_FLOWS'] ?? 300_000)
/** One flow in a hundred is a TCP connection. */
const TCP_SHARE = 0.01
const RUN_LIMIT_MS = 180_000
const TTL_S = 1
const GRACE_S = 1
const UDP_IDLE_S = 3
/** How often open connections are looked at. */
const RECHECK_S = 5
/** What is open is used for so many times its TTL and grace. */
const TIMES = 10
const SLACK_S = 3

const IDLE = { name: 'idle.test', address: '198.18.40.1', port: 7000 }
const BUSY = { name: 'busy.test', address: '198.18.42.1' }
const QUIC = { name: 'quic.test', address: '198.18.43.1' }
const GONE = { name: 'gone.test', address: '198.18.41.1' }
const FLOW_PORT = 7001
const FIRST_4 = '198.19.0.0'
const FIRST_6 = '2001:db8:80:1::'
const ADDRESSES = 8192
const FIRST_PORT = 10_000

const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: flows }
spec:
  endpointSelector: { matchLabels: { app: busy } }
  egress:
    - toFQDNs: [{ matchPattern: '*.test' }]
    - toCIDR: [198.19.0.0/16, '2001:db8:80:1::/64']
`
const ENDPOINTS = [1, 2].map(
  (i) =>
    `{ name: pod${i}, addresses: [10.20.${i}.2, 'fd20:${i}::2'], labels: { app: busy }, interface: lxc${i} }`,
)

function skipReason(): string | false {
  const reason = canUseNamegate()
  if (reason !== undefined) return reason
  try {
    execFileSync('which', ['gcc'], { stdio: 'ignore' })
    return false
  } catch {
    return 'gcc is not installed'
  }
}

interface NameRow {
  readonly name: string
  readonly addresses: readonly { readonly address: string; readonly state: string }[]
}

class Site {
  readonly lab: PodLab = podLab({ pods: 2 })
  readonly #program = compiled('short-flows')
  readonly namegate = new Namegate(this.lab, {
    policies: { 'flows.yaml': POLICY },
    endpoints: ENDPOINTS,
    config: `dns: { grace-after-ttl: ${GRACE_S}s, udp-idle: ${UDP_IDLE_S}s }`,
  })

  get pod(): Host {
    return this.lab.pods[0]!.host
  }

  async start(): Promise<void> {
    await this.lab.startNameServer({
      names: Object.fromEntries(
        [IDLE, BUSY, QUIC, GONE].map(({ name, address }) => [name, [address]]),
      ),
      ttl: TTL_S,
    })
    await startEcho(this.lab.internet, IDLE.port)
    await startEchoUdp(this.lab.internet, QUIC.address, IDLE.port)
    const server = this.lab.internet.start(this.#program, ['serve', String(FLOW_PORT)])
    await server.untilOutput(/^ready$/m)
    await this.namegate.start()
  }

  async close(): Promise<void> {
    await this.namegate.close()
    await this.lab.close()
  }

  async ask(name: string, address: string): Promise<void> {
    const { stdout } = await this.pod.run('dig', ['+short', `@${this.lab.pods[0]!.gateway4}`, name])
    assert.equal(stdout.trim(), address)
  }

  /** Does something that may take long while the names are asked again and again. */
  async whileAsked<Result>(
    names: readonly { readonly name: string; readonly address: string }[],
    run: () => Promise<Result>,
  ): Promise<Result> {
    let isOver = false
    const result = run().finally(() => (isOver = true))
    result.catch(() => undefined)
    while (!isOver) {
      for (const { name, address } of names) await this.ask(name, address)
      await sleep(100)
    }
    return await result
  }

  async #flows(...args: readonly (string | number)[]): Promise<number> {
    const other = this.lab.pods[1]!.host
    const { code, stdout, stderr } = await other.run(this.#program, args.map(String), {
      limitMs: RUN_LIMIT_MS,
    })
    assert.equal(code, 0, stderr)
    return Number(stdout)
  }

  /** So many flows; source ports from `base` on. Returns how many there were, TCP only those that connected. */
  async makeFlows(count: number, base: number): Promise<number> {
    const tcp = Math.round(count * TCP_SHARE)
    const sixth = Math.floor((count - tcp) / 3)
    let made = await this.#flows('udp', FIRST_6, ADDRESSES, FLOW_PORT, base, sixth)
    made += await this.#flows('udp', FIRST_4, ADDRESSES, FLOW_PORT, base, count - tcp - sixth)
    made += await this.#flows('tcp', FIRST_4, ADDRESSES, FLOW_PORT, tcp)
    return made
  }

  holds(address: string): boolean {
    return this.namegate.prefixes().has(`${address}/32`)
  }

  async stateOf(name: string): Promise<readonly string[]> {
    const { text } = await http(
      { socketPath: join(this.namegate.folder, 'admin.sock') },
      '/v1/names',
    )
    const rows = JSON.parse(text) as readonly NameRow[]
    return rows
      .filter((row) => row.name === name)
      .flatMap((row) => row.addresses.map(({ state }) => state))
  }

  /** Entries of one of the kernel's connection tables. */
  connections(name: 'ng_conn' | 'ng_conn_new'): number {
    const bpf = loadBpf()
    const fd = bpf.openPin(this.namegate.pin(name))
    try {
      let entries = 0
      const { key: size } = MAP_SHAPES[name]
      new KernelMap(bpf, name, fd).forEach((keys, at) => {
        // Neighbours that are known to be on the link stand there as well.
        const protocol = keys.subarray(at, at + size)[8]
        if (protocol === 6 || protocol === 17) entries++
      })
      return entries
    } finally {
      bpf.close(fd)
    }
  }

  /** Seconds until the kernel's map has the address no more. */
  async untilForgotten(address: string, limitS: number): Promise<number> {
    const began = performance.now()
    while (this.holds(address)) {
      const seconds = (performance.now() - began) / 1000
      assert.ok(seconds < limitS, `${address} is still known after ${seconds.toFixed(1)} s`)
      await sleep(100)
    }
    return (performance.now() - began) / 1000
  }
}

describe('what is open', { skip: skipReason() }, () => {
  let site: Site
  before(async () => {
    site = new Site()
    await site.start()
  })
  after(async () => await site.close())

  it(`is not cut by ${FLOWS} short flows beside it, and keeps its address until it is over`, async (t) => {
    await site.ask(GONE.name, GONE.address)
    const { pod } = site
    const [idle, busy, quic] = await site.whileAsked(
      [IDLE, BUSY, QUIC],
      async () =>
        [
          await IdleConnection.open(pod, IDLE.address, IDLE.port),
          await Talk.open(pod, BUSY.address, IDLE.port),
          await Talk.openFlow(pod, QUIC.address, IDLE.port),
        ] as const,
    )
    const asked = performance.now()
    await idle.moves()
    const dropped = await site.namegate.stat('drop_policy')
    const allowed = await site.namegate.stat('verdict_allow')

    const began = performance.now()
    let made = await site.makeFlows(FLOWS / 2, FIRST_PORT)
    // The second half is sent when only the connection keeps the address.
    const wait = (TTL_S + GRACE_S + SLACK_S) * 1000 - (performance.now() - asked)
    if (wait > 0) await sleep(wait)
    made += await site.makeFlows(FLOWS / 2, FIRST_PORT + 20_000)
    const seconds = (performance.now() - began - Math.max(0, wait)) / 1000
    const remembered = site.connections('ng_conn_new')
    t.diagnostic(
      `${made} flows in ${seconds.toFixed(1)} s, ${remembered} of them still in ng_conn_new, ${site.connections('ng_conn')} open connection`,
    )
    assert.equal(made, FLOWS)
    assert.ok((await site.namegate.stat('verdict_allow')) - allowed >= FLOWS, 'all were judged')
    assert.equal(await site.namegate.stat('drop_policy'), dropped)
    assert.ok(remembered < FLOWS / 2, 'short flows push each other out')

    const past = Math.max(TIMES * (TTL_S + GRACE_S), TTL_S + GRACE_S + RECHECK_S + SLACK_S)
    while (performance.now() - asked < past * 1000) await sleep(50)
    assert.equal(site.holds(GONE.address), false, 'an address without a connection is forgotten')
    for (const { name, address } of [IDLE, BUSY, QUIC]) {
      assert.equal(site.holds(address), true)
      assert.deepEqual(await site.stateOf(name), ['connected'], name)
    }
    assert.equal(site.connections('ng_conn'), 2)
    for (let i = 0; i < 3; i++) await idle.moves()
    await busy.moves()
    await quic.moves()
    assert.equal(await site.namegate.stat('drop_policy'), dropped)

    await Promise.all([idle.close(), busy.stop(), quic.stop()])
    // What each may take is counted from here, and one look more finds what the look before set aside.
    for (const [{ name, address }, idleS] of [
      [IDLE, 0],
      [BUSY, 0],
      [QUIC, UDP_IDLE_S],
    ] as const) {
      const forgotten = await site.untilForgotten(address, idleS + RECHECK_S + SLACK_S)
      t.diagnostic(`${name} forgotten at most ${forgotten.toFixed(1)} s later`)
      assert.deepEqual(await site.stateOf(name), [])
    }
  })
})
