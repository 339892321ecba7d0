// Endpoints on interfaces that appear later, disappear and are made again; packets with a source of another endpoint; and an endpoint whose
// policy allows nothing, which can still send DNS to namegate.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Host } from '../../support/labs/lab.ts'
import { DNS_4, podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import {
  curl,
  DENIED,
  dig,
  elapsedUntil,
  mkNames,
  mkPolicy,
  SHOP,
  ZONES,
} from '../../support/labs/hook-lab.ts'

const skip = canUseNamegate() ?? false

async function fromLeast(
  times: number,
  measure: () => Promise<number>,
): Promise<readonly number[]> {
  const found: number[] = []
  for (let i = 0; i < times; i++) found.push(await measure())
  return found.toSorted((a, b) => a - b)
}

describe('hook on an interface', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate
  let pod2: Host
  before(async () => {
    lab = podLab()
    pod2 = lab.lab.addHost('pod2')
    await Promise.all([lab.startNameServer(ZONES), lab.startWebServer()])
    namegate = new Namegate(lab, {
      policies: { 'shop.yaml': mkNames('shop', 'shop.test') },
      endpoints: [
        "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }",
        '{ name: pod2, addresses: [10.20.2.2], labels: { app: shop }, interface: lxc2 }',
      ],
    })
    await namegate.start()
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  /** Makes pod2's interface. Returns the time until the programs were attached. */
  async function makeLink(): Promise<number> {
    lab.node.ip('link', 'add', 'lxc2', 'type', 'veth', 'peer', 'eth0', 'netns', pod2.namespace)
    const elapsed = await elapsedUntil(() => namegate.isAttached('lxc2'))
    lab.node.ip('address', 'add', '10.20.2.1/24', 'dev', 'lxc2')
    lab.node.ip('link', 'set', 'lxc2', 'up')
    pod2.ip('address', 'add', '10.20.2.2/24', 'dev', 'eth0')
    pod2.ip('link', 'set', 'eth0', 'up')
    pod2.ip('route', 'add', 'default', 'via', '10.20.2.1')
    return elapsed
  }

  /** Waits until the kernel has this number of endpoints. */
  async function untilEndpoints(count: number): Promise<void> {
    await elapsedUntil(() => namegate.dump().endpoints.length === count)
  }

  async function stateOfPod2(): Promise<{ enforcing: boolean; reason: string } | undefined> {
    const endpoints = (await namegate.get('endpoints')) as {
      name: string
      enforcing: boolean
      reason: string
    }[]
    return endpoints.find(({ name }) => name === 'pod2')
  }

  it('that does not exist yet is no error, and the endpoint reports why it is not enforced', async () => {
    assert.equal(namegate.dump().endpoints.length, 1)
    const state = await stateOfPod2()
    assert.equal(state?.enforcing, false)
    assert.match(state.reason, /lxc2 is not there/)
  })

  it('is attached when the interface appears, also when it is made again', async (t) => {
    const elapsed = await fromLeast(5, async () => {
      const time = await makeLink()
      await untilEndpoints(2)
      lab.node.ip('link', 'delete', 'lxc2')
      await untilEndpoints(1)
      return time
    })
    t.diagnostic(`attached after ${elapsed.map((time) => time.toFixed(0)).join(', ')} ms`)
    // The kernel's event brings the daemon here. The other times can include a wait for a processor.
    assert.ok(elapsed[0]! < 1000)
  })

  it('fences an interface that was made again under its name', async () => {
    await makeLink()
    const listener = '@10.20.1.1'
    assert.equal(await curl(pod2, `http://${SHOP.address4}/`), false)
    assert.match((await dig(pod2, listener, SHOP.name)).stdout, /status: NOERROR/)
    assert.equal(await curl(pod2, `http://${SHOP.address4}/`), true)
    assert.equal(await curl(pod2, `http://${DENIED}/`), false)
    assert.equal((await stateOfPod2())?.enforcing, true)
  })

  it('gives a later workload nothing that the earlier one learned', async () => {
    assert.equal(await curl(pod2, `http://${SHOP.address4}/`), true, 'learned before')
    lab.node.ip('link', 'delete', 'lxc2')
    await untilEndpoints(1)
    await makeLink()
    assert.equal(await curl(pod2, `http://${SHOP.address4}/`), false)
    assert.match((await dig(pod2, '@10.20.1.1', SHOP.name)).stdout, /status: NOERROR/)
    assert.equal(await curl(pod2, `http://${SHOP.address4}/`), true)
  })

  it('drops and counts packets with a source of another endpoint', async () => {
    const { host, gateway4, gateway6 } = lab.pods[0]!
    await dig(host, `@${gateway4}`, SHOP.name, 'A', SHOP.name, 'AAAA')
    host.ip('address', 'add', '10.20.1.77/24', 'dev', 'eth0')
    host.ip('address', 'add', 'fd20:1::77/64', 'dev', 'eth0', 'nodad')
    const reached = { 4: `http://${SHOP.address4}/`, 6: `http://[${SHOP.address6}]/` }
    for (const [url, own, foreign, listener] of [
      [reached[4], '10.20.1.2', '10.20.1.77', gateway4],
      [reached[6], 'fd20:1::2', 'fd20:1::77', gateway6],
    ] as const) {
      assert.equal(await curl(host, url, '--interface', own), true)
      const before = await namegate.stat('drop_source')
      assert.equal(await curl(host, url, '--interface', foreign), false)
      const between = await namegate.stat('drop_source')
      assert.ok(between > before, 'the SYN was counted')
      assert.notEqual((await dig(host, '-b', foreign, `@${listener}`, SHOP.name)).code, 0)
      assert.ok((await namegate.stat('drop_source')) > between, 'the query was counted')
    }
  })
})

describe('hook of an endpoint whose policy allows nothing', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate
  before(async () => {
    lab = podLab()
    await Promise.all([lab.startNameServer(ZONES), lab.startWebServer()])
    namegate = new Namegate(lab, {
      policies: { 'nothing.yaml': mkPolicy('shop', '{}') },
      endpoints: [
        "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }",
      ],
    })
    await namegate.start()
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  it('lets DNS to the listener through, over UDP and TCP, and nothing else', async () => {
    assert.deepEqual(namegate.policies(), [])
    const { host, gateway4, gateway6 } = lab.pods[0]!
    for (const listener of [gateway4, gateway6]) {
      for (const over of ['+notcp', '+tcp']) {
        const { stdout } = await dig(host, `@${listener}`, over, SHOP.name)
        assert.match(stdout, /status: NOERROR/)
      }
    }
    for (const url of [`http://${SHOP.address4}/`, `http://[${SHOP.address6}]/`]) {
      assert.equal(await curl(host, url), false)
    }
    assert.equal(await curl(host, `http://${gateway4}/`), false, 'other ports of the node')
    assert.equal((await host.run('ping', ['-c', '1', '-W', '0.3', gateway4])).code === 0, false)
    assert.notEqual((await dig(host, `@${DNS_4}`, SHOP.name)).code, 0, 'other resolvers')
  })
})
