// Enforcement continues without the daemon, and a daemon that starts opens and closes nothing on the way. Packets are sent all the time,
// while processes are killed and started, and show what the kernel's maps allow.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Host } from '../../support/labs/lab.ts'
import { podLab, type Pod, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { Probe, startEcho, Talk } from '../../support/peers/traffic.ts'

const skip = canUseNamegate() ?? false
const LOCAL_IDENTITIES = 1 << 24

const SHOP = { name: 'www.shop.test', address4: '198.18.40.1', address6: '2001:db8:80::1' }
const DENIED = '198.18.66.6'
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }"

function mkPolicy(name: string, egress: string): string {
  return `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: ${name} }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [${egress}]
`
}

function ports(port: number): string {
  return `toPorts: [{ ports: [{ port: '${port}', protocol: TCP }] }]`
}

const NAMES = mkPolicy('names', `{ toFQDNs: [{ matchPattern: '*.shop.test' }], ${ports(7000)} }`)
/** Two ranges with crossed ports. If their numbers were exchanged for a moment, the wrong port would open. */
const FIRST = { allowed: 80, other: 8080, probed: '198.18.71.5', talked: '198.18.71.9' }
const SECOND = { allowed: 8080, other: 80, probed: '198.18.72.5' }
const CIDR_FIRST = mkPolicy('first', `{ toCIDR: [198.18.71.0/24], ${ports(FIRST.allowed)} }`)
const CIDR_SECOND = mkPolicy('second', `{ toCIDR: [198.18.72.0/24], ${ports(SECOND.allowed)} }`)

/** Tries one new connection. The limit is shorter than TCP's first retransmission. */
async function connects(host: Host, address: string, port: number): Promise<boolean> {
  const script = `exec 3<>/dev/tcp/${address}/${port}`
  const { code } = await host.run('timeout', ['0.5', 'bash', '-c', script])
  return code === 0
}

/** The numbers in the kernel's maps without reserved ones. */
function numbersOf(namegate: Namegate): ReadonlySet<number> {
  const { prefixes, policies } = namegate.dump()
  const numbers = new Set<number>(policies.map(({ identity }) => identity))
  for (let i = 0; i < prefixes.count; i++) numbers.add(prefixes.identity(i))
  return new Set([...numbers].filter((number) => number >= LOCAL_IDENTITIES))
}

/** A lab with servers on every port of the tests, and namegate between them and the pod. */
class Site {
  readonly lab: PodLab = podLab()
  readonly namegate = new Namegate(this.lab, {
    policies: { '1.yaml': CIDR_FIRST, '2.yaml': CIDR_SECOND, '3.yaml': NAMES },
    endpoints: [ENDPOINT],
  })

  get pod(): Pod {
    return this.lab.pods[0]!
  }

  async start(): Promise<void> {
    await Promise.all([
      this.lab.startNameServer({ names: { [SHOP.name]: [SHOP.address4, SHOP.address6] } }),
      startEcho(this.lab.internet, 80, 8080, 7000),
      startEcho(this.pod.host, 9000),
    ])
    await this.namegate.start()
  }

  /** Asks the shop's name for both families. */
  async ask(): Promise<void> {
    const { stdout } = await this.pod.host.run('dig', [
      '+short',
      '+tries=1',
      `@${this.pod.gateway4}`,
      SHOP.name,
      'A',
      SHOP.name,
      'AAAA',
    ])
    assert.deepEqual(stdout.trim().split('\n'), [SHOP.address4, SHOP.address6])
  }

  async close(): Promise<void> {
    await this.namegate.close()
    await this.lab.close()
  }
}

describe('namegate killed', { skip }, () => {
  const talks: Talk[] = []
  let site: Site
  before(async () => {
    site = new Site()
    await site.start()
    await site.ask()
    const { lab, pod } = site
    talks.push(
      await Talk.open(pod.host, SHOP.address4, 7000),
      await Talk.open(pod.host, SHOP.address6, 7000),
      await Talk.open(lab.internet, pod.address4, 9000),
      await Talk.open(lab.internet, pod.address6, 9000),
    )
    assert.equal(await connects(pod.host, DENIED, 80), false)
    await site.namegate.kill()
  })
  after(async () => await site.close())

  it('leaves connections that the endpoint began open in both directions', async () => {
    await Promise.all(talks.slice(0, 2).map(async (talk) => await talk.moves()))
  })

  it('leaves connections that the peer began open in both directions', async () => {
    await Promise.all(talks.slice(2).map(async (talk) => await talk.moves()))
  })

  it('leaves a denied address denied, and other ports of a learned one', async () => {
    assert.equal(await connects(site.pod.host, DENIED, 80), false)
    assert.equal(await connects(site.pod.host, SHOP.address4, 80), false)
  })

  it('leaves a learned address reachable', async () => {
    assert.equal(await connects(site.pod.host, SHOP.address4, 7000), true)
    assert.equal(await connects(site.pod.host, SHOP.address6, 7000), true)
  })

  it('leaves the peer able to begin connections', async () => {
    assert.equal(await connects(site.lab.internet, site.pod.address4, 9000), true)
  })
})

describe('namegate started again with policies in another order', { skip }, () => {
  let site: Site
  before(async () => {
    site = new Site()
    await site.start()
  })
  after(async () => await site.close())

  it('never opens the other port of a range, and never closes its own', async (t) => {
    const { lab, namegate, pod } = site
    await site.ask()
    const kept = [
      await Talk.open(pod.host, FIRST.talked, FIRST.allowed),
      await Talk.open(lab.internet, pod.address4, 9000),
      await Talk.open(lab.internet, pod.address6, 9000),
    ]
    const learned = await Talk.open(pod.host, SHOP.address4, 7000)
    const old = numbersOf(namegate)
    const probes = [
      { ...FIRST, probe: await Probe.begin(pod.host, 20, FIRST.probed, 80, 8080) },
      { ...SECOND, probe: await Probe.begin(pod.host, 20, SECOND.probed, 80, 8080) },
    ]
    await sleep(200)

    await namegate.kill()
    namegate.writePolicies({ '1.yaml': NAMES, '2.yaml': CIDR_SECOND, '3.yaml': CIDR_FIRST })
    await namegate.start()
    await sleep(500)
    await Promise.all(probes.map(async ({ probe }) => await probe.stop()))

    for (const { allowed, other, probed, probe } of probes) {
      const passed = probe.attempts(allowed).filter(({ connected }) => connected).length
      const total = probe.attempts(allowed).length
      const wrong = probe.attempts(other).filter(({ connected }) => connected).length
      t.diagnostic(
        `${probed}: port ${allowed} ${passed} of ${total}, port ${other} ${wrong} of ${probe.attempts(other).length}`,
      )
      assert.ok(total > 30)
      assert.equal(passed, total)
      assert.ok(probe.attempts(other).length > 30)
      assert.equal(wrong, 0)
    }
    assert.ok(old.size >= 3)
    assert.deepEqual(numbersOf(namegate), old, 'equal label sets keep their numbers')

    await Promise.all(kept.map(async (talk) => await talk.moves()))
    await learned.moves()
  })
})
