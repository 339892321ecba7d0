// After a kill at any moment and a new start, addresses stay reachable without new queries, under the same numbers. If the state folder is
// missing, the kernel's own state stays in force for `state.restore-grace`. New connections are tried all the time, and none is lost.

import assert from 'node:assert/strict'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startBurst } from '../../support/peers/burst.ts'
import { until } from '../../support/peers/client.ts'
import { podLab, type Pod, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { Probe, startEcho, Talk } from '../../support/peers/traffic.ts'

const skip = canUseNamegate() ?? false
const SUFFIX = 'burst.shop.test'
const LATE = 'late.shop.test'
const BURST = 1000

const ONE = { name: 'one.shop.test', address: '198.18.40.1' }
const DENIED = '198.18.66.6'
const PORT = 7000
const ZONES = {
  names: { [ONE.name]: [ONE.address] },
  fresh: { [SUFFIX]: { first4: '198.18.100.0' }, [LATE]: { first4: '198.18.120.0' } },
}
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }"

function policy(name: string, ...peers: readonly string[]): string {
  const rules = peers.map((peer) => `{ toFQDNs: [${peer}] }`)
  return `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: ${name} }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [${rules.join(', ')}]
`
}

const WILD = policy('wild', "{ matchPattern: '**.shop.test' }")
const EXACT = policy('exact', `{ matchName: ${ONE.name} }`)

describe('namegate started again after SIGKILL', { skip }, () => {
  let lab: PodLab
  let pod: Pod
  let namegate: Namegate
  before(async () => {
    lab = podLab()
    pod = lab.pods[0]!
    await Promise.all([lab.startNameServer(ZONES), startEcho(lab.internet, PORT)])
    namegate = new Namegate(lab, {
      policies: { 'wild.yaml': WILD, 'exact.yaml': EXACT },
      endpoints: [ENDPOINT],
      config: 'dns: { grace-after-ttl: 10m }',
    })
    await namegate.start()
    await ask(ONE.name)
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  async function ask(name: string): Promise<void> {
    const { stdout } = await pod.host.run('dig', ['+short', '+tries=1', `@${pod.gateway4}`, name])
    assert.match(stdout, /^198\.18\./)
  }

  async function burst(suffix: string): Promise<void> {
    const asker = startBurst(pod.host, pod.gateway4, suffix, BURST)
    await asker.untilOutput(new RegExp(`^answered ${BURST}$`, 'm'))
    // The newest names are a few milliseconds old.
    await namegate.kill()
  }

  /** Begins a connection every 20 ms to an allowed and to a denied address while `change` runs. */
  async function probe(change: () => Promise<void>): Promise<string> {
    const allowed = await Probe.begin(pod.host, 20, ONE.address, PORT)
    const denied = await Probe.begin(pod.host, 20, DENIED, PORT)
    await allowed.untilConnected(PORT, 0)
    await change()
    await allowed.untilConnected(PORT, Date.now())
    await Promise.all([allowed.stop(), denied.stop()])
    const tried = allowed.attempts(PORT)
    const through = denied.attempts(PORT).filter(({ connected }) => connected)
    const lost = tried.filter(({ connected }) => !connected)
    const text = `${lost.length} of ${tried.length} lost, ${through.length} of ${denied.attempts(PORT).length} denied connections passed`
    assert.deepEqual([lost, through], [[], []], text)
    return text
  }

  /** Writes the policy files, and waits until they are in force and the selector `text` exists or is gone. */
  async function change(
    policies: Readonly<Record<string, string>>,
    text: string,
    isThere: boolean,
  ): Promise<void> {
    namegate.writePolicies(policies)
    const isSo = async (): Promise<boolean> => {
      const found = (await namegate.get('selectors')) as { selector: string }[]
      return found.some(({ selector }) => selector === text) === isThere
    }
    await until(`selector ${text}`, isSo, 15_000, 20)
    assert.equal((await namegate.run('policy', 'wait')).code, 0)
  }

  /** The number of addresses that have the label of a selector. */
  async function labelled(text: string): Promise<number> {
    const found = (await namegate.get('ipcache')) as { labels: readonly string[] }[]
    return found.filter(({ labels }) => labels.includes(`fqdn:${text}`)).length
  }

  it('keeps names, numbers and flows without a new query', async (t) => {
    const talk = await Talk.open(pod.host, ONE.address, PORT)
    const before = namegate.prefixes()
    const names = await namegate.get('names')
    const text = await probe(async () => {
      await namegate.kill()
      await namegate.start()
    })
    t.diagnostic(text)
    await talk.moves()
    assert.equal(namegate.prefixes().get(`${ONE.address}/32`), before.get(`${ONE.address}/32`))
    const [known] = (await namegate.get('names')) as { name: string; selectors: string[] }[]
    assert.equal(known?.name, (names as { name: string }[])[0]?.name)
    assert.deepEqual(known?.selectors, ['**.shop.test', ONE.name])
  })

  it('keeps the numbers of names that were learned in the last 100 ms', async () => {
    await burst(SUFFIX)
    const before = namegate.prefixes()
    assert.ok(before.size > BURST)
    await namegate.start()
    const after = namegate.prefixes()
    const other = [...before].filter(([prefix, id]) => after.get(prefix) !== id)
    assert.deepEqual(other, [])
  })

  it('loses no packet when a selector is removed while no daemon runs (CFP-28427, restart)', async (t) => {
    const text = await probe(async () => {
      await namegate.kill()
      namegate.writePolicies({ 'wild.yaml': WILD })
      await namegate.start()
    })
    t.diagnostic(text)
  })

  it('leaves no label of a removed selector, after a kill, a start, the change and a take-over', async () => {
    const policies = { 'wild.yaml': WILD, 'exact.yaml': EXACT }
    const text = `*.${LATE}`
    const more = { ...policies, 'late.yaml': policy('late', `{ matchPattern: '${text}' }`) }
    await change(more, text, true)
    await burst(LATE)
    await namegate.start()
    await until('the names have the label', async () => (await labelled(text)) >= BURST)
    await change(policies, text, false)
    assert.equal(await labelled(text), 0, 'before the take-over')
    const next = lab.node.start('bin/namegate', [
      'run',
      '--take-over',
      '--config',
      namegate.configFile,
    ])
    await next.untilOutput(/namegate serves/, 60_000)
    assert.equal((await namegate.daemon.ended(20_000))?.code, 0)
    assert.equal((await namegate.run('policy', 'wait')).code, 0)
    assert.equal(await labelled(text), 0, 'after the take-over')
    await next.stop()
    await namegate.start()
  })

  it("continues with the kernel's state when the state folder is missing, and gives no number twice", async (t) => {
    const before = namegate.prefixes()
    const text = await probe(async () => {
      await namegate.kill()
      rmSync(join(namegate.folder, 'state'), { recursive: true })
      await namegate.start()
    })
    t.diagnostic(text)
    const number = before.get(`${ONE.address}/32`)
    assert.equal(namegate.prefixes().get(`${ONE.address}/32`), number)
    namegate.writePolicies({
      'wild.yaml': WILD,
      'other.yaml': policy('other', '{ matchName: two.shop.test }'),
    })
    await namegate.run('policy', 'wait')
    const taken = new Set(before.values())
    const given = [...namegate.prefixes()].filter(
      ([prefix, id]) => !before.has(prefix) && taken.has(id),
    )
    assert.deepEqual(given, [])
    assert.ok(existsSync(join(namegate.folder, 'state')))
  })
})

describe('namegate started again after SIGKILL, nftables', { skip }, () => {
  let lab: PodLab
  let pod: Pod
  let namegate: Namegate
  before(async () => {
    lab = podLab()
    pod = lab.pods[0]!
    await Promise.all([lab.startNameServer(ZONES), startEcho(lab.internet, PORT)])
    namegate = new Namegate(lab, {
      policies: { 'wild.yaml': WILD },
      endpoints: [ENDPOINT],
      datapath: '{ kind: nftables }',
    })
    await namegate.start({ attached: [] })
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  async function numberOf(prefix: string): Promise<number | undefined> {
    const entries = (await namegate.get('ipcache')) as {
      prefix: string
      identity: number
    }[]
    return entries.find((entry) => entry.prefix === prefix)?.identity
  }

  it('keeps names, numbers and flows', async () => {
    await pod.host.run('dig', ['+short', '+tries=1', `@${pod.gateway4}`, ONE.name])
    const allowed = await Probe.begin(pod.host, 20, ONE.address, PORT)
    const denied = await Probe.begin(pod.host, 20, DENIED, PORT)
    await allowed.untilConnected(PORT, 0)
    const before = await numberOf(`${ONE.address}/32`)
    await namegate.kill()
    await namegate.start({ attached: [] })
    await allowed.untilConnected(PORT, Date.now())
    await Promise.all([allowed.stop(), denied.stop()])
    assert.deepEqual(
      allowed.attempts(PORT).filter(({ connected }) => !connected),
      [],
    )
    assert.deepEqual(
      denied.attempts(PORT).filter(({ connected }) => connected),
      [],
    )
    assert.ok(before !== undefined)
    assert.equal(await numberOf(`${ONE.address}/32`), before)
  })
})
