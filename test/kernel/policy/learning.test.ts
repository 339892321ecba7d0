// Scopes of learned addresses on the real kernel. With `learning: endpoint`, an address that one pod learned stays closed for another pod
// under the same policy until that pod asks. With `default-egress: allow-named`, a pod without policy reaches learned addresses and no bare
// address. IPv4 and IPv6; also after the end of a pod and with a new daemon. [A25]

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { formatPrefix } from '../../../src/core/ip.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'

const skip = canUseNamegate() ?? false

const SHOP = { name: 'www.shop.test', addresses: ['198.18.40.1', '2001:db8:80::1'] } as const
const BANK = { name: 'www.bank.test', addresses: ['198.18.50.1', '2001:db8:80::2'] } as const
const UNLEARNED = ['198.18.66.6', '2001:db8:80::66'] as const
const ZONES = { names: { [SHOP.name]: [...SHOP.addresses], [BANK.name]: [...BANK.addresses] } }

/** Pods: two under one policy, one without policy. */
const FIRST = 0
const SECOND = 1
const FREE = 2

const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [{ toFQDNs: [{ matchPattern: '*.shop.test' }] }]
`
const ENDPOINTS = ['shop', 'shop', 'free'].map(
  (app, i) =>
    `{ name: pod${i + 1}, addresses: [10.20.${i + 1}.2, 'fd20:${i + 1}::2'], labels: { app: ${app} }, interface: lxc${i + 1} }`,
)
const CONFIG = 'learning: endpoint\ndefault-egress: allow-named'
const OPEN_S = 5
const SHUT_S = 0.4
const WAIT_MS = 10_000

class Site {
  readonly lab: PodLab = podLab({ pods: 3 })
  readonly namegate = new Namegate(this.lab, this.#options(ENDPOINTS))

  #options(endpoints: readonly string[]) {
    return { policies: { 'shop.yaml': POLICY }, endpoints, config: CONFIG }
  }

  async start(): Promise<void> {
    await this.lab.startNameServer(ZONES)
    await this.lab.startWebServer()
    await this.namegate.start()
  }

  async close(): Promise<void> {
    await this.namegate.close()
    await this.lab.close()
  }

  setEndpoints(endpoints: readonly string[]): void {
    this.namegate.writeConfig(this.#options(endpoints))
  }

  /** Asks for A and AAAA. */
  async ask(pod: number, name: string): Promise<void> {
    const { host, gateway4 } = this.lab.pods[pod]!
    const asked = ['A', 'AAAA'].map(async (type) => {
      const { stdout } = await host.run('dig', ['+short', '+time=5', `@${gateway4}`, name, type])
      assert.notEqual(stdout.trim(), '', `${name} ${type} is answered`)
    })
    await Promise.all(asked)
  }

  async connects(pod: number, address: string, seconds: number): Promise<boolean> {
    const command = `exec 3<>/dev/tcp/${address}/80`
    const args = [String(seconds), 'bash', '-c', command]
    return (await this.lab.pods[pod]!.host.run('timeout', args)).code === 0
  }

  async reaches(pod: number, addresses: readonly string[]): Promise<void> {
    const reached = addresses.map(async (each) => await this.connects(pod, each, OPEN_S))
    const all = addresses.map(() => true)
    assert.deepEqual(await Promise.all(reached), all, `pod${pod + 1} to ${addresses.join(', ')}`)
  }

  async reachesNone(pod: number, addresses: readonly string[]): Promise<void> {
    const reached = addresses.map(async (each) => await this.connects(pod, each, SHUT_S))
    const none = addresses.map(() => false)
    assert.deepEqual(await Promise.all(reached), none, `pod${pod + 1} to ${addresses.join(', ')}`)
  }

  /** `ENDPOINT ADDRESS/LENGTH` of the kernel's entries for learned addresses. Endpoint 0 is the node's scope. */
  learned(): readonly string[] {
    const { prefixes } = this.namegate.dump()
    const texts: string[] = []
    for (let i = 0; i < prefixes.count; i++) {
      const text = formatPrefix(prefixes.prefix(i))
      if (/^(198\.18|2001:db8:80)/.test(text)) texts.push(`${prefixes.scope(i)} ${text}`)
    }
    return texts.sort()
  }

  /** The number of a pod in the kernel. */
  idOf(pod: number): number {
    const source = this.lab.pods[pod]!.address4
    const { endpoints } = this.namegate.dump()
    const found = endpoints.find(({ sources }) =>
      sources.some((prefix) => formatPrefix(prefix) === `${source}/32`),
    )
    assert.ok(found !== undefined, `pod${pod + 1} is in the kernel`)
    return found.id
  }

  async untilLearned(expected: readonly string[]): Promise<void> {
    const deadline = performance.now() + WAIT_MS
    while (this.learned().join() !== expected.join() && performance.now() < deadline) {
      await sleep(20)
    }
    assert.deepEqual(this.learned(), expected)
  }
}

function entries(id: number, ...addresses: readonly string[]): readonly string[] {
  return addresses.map((each) => `${id} ${each}/${each.includes(':') ? 128 : 32}`).sort()
}

describe('learning in scopes (A25)', { skip }, () => {
  let site: Site

  before(async () => {
    site = new Site()
    await site.start()
  })
  after(async () => {
    await site.close()
  })

  it('opens for the pod that asked, and for another under the same policy only when it asks, too', async () => {
    await site.ask(FIRST, SHOP.name)
    await site.reaches(FIRST, SHOP.addresses)
    await site.reachesNone(SECOND, SHOP.addresses)
    assert.deepEqual(site.learned(), entries(site.idOf(FIRST), ...SHOP.addresses))
    await site.ask(SECOND, SHOP.name)
    await site.reaches(SECOND, SHOP.addresses)
  })

  it('lets a pod without policy reach learned addresses, and no bare address', async () => {
    await site.reachesNone(FREE, [...SHOP.addresses, ...UNLEARNED])
    await site.ask(FREE, BANK.name)
    await site.reaches(FREE, BANK.addresses)
    await site.reachesNone(FREE, [...SHOP.addresses, ...UNLEARNED])
    await site.reachesNone(FIRST, BANK.addresses)
  })

  it('matches the kernel, and shows the scope of each entry', async () => {
    const { code, stdout } = await site.namegate.run('datapath', 'verify')
    assert.equal(code, 0, stdout)
    const rows = (await site.namegate.get('ipcache')) as {
      prefix: string
      endpoint?: string
    }[]
    const shop = rows.filter(({ prefix }) => prefix === `${SHOP.addresses[0]}/32`)
    const owners = new Set(shop.map(({ endpoint }) => endpoint))
    assert.deepEqual(owners, new Set(['pod1', 'pod2']))
  })

  it('removes the scope of a removed pod, and nothing else', async () => {
    const [first, second] = [site.idOf(FIRST), site.idOf(SECOND)]
    site.setEndpoints(ENDPOINTS.slice(0, 2))
    const kept = [...entries(first, ...SHOP.addresses), ...entries(second, ...SHOP.addresses)]
    await site.untilLearned(kept.sort())
    await site.reaches(FIRST, SHOP.addresses)
  })

  it('gives a new daemon what each pod learned, and nothing of a removed pod', async () => {
    const [first, second] = [site.idOf(FIRST), site.idOf(SECOND)]
    const kept = [...entries(first, ...SHOP.addresses), ...entries(second, ...SHOP.addresses)]
    await site.namegate.stop()
    await site.reaches(FIRST, SHOP.addresses)
    site.setEndpoints(ENDPOINTS)
    await site.namegate.start()
    await site.untilLearned(kept.sort())
    await site.reaches(FIRST, SHOP.addresses)
    await site.reachesNone(FREE, BANK.addresses)
    await site.ask(FREE, BANK.name)
    await site.reaches(FREE, BANK.addresses)
    await site.untilLearned([...kept, ...entries(site.idOf(FREE), ...BANK.addresses)].sort())
    const { code, stdout } = await site.namegate.run('datapath', 'verify')
    assert.equal(code, 0, stdout)
  })
})
