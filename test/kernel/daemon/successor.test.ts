// A pod is removed, and another one at once gets its interface name and address. The second pod gets nothing that the first one learned or
// had open. The second pod lives in the network namespace of the first one, so its kernel still has the sockets of the first one and
// continues to send on their tuples, by UDP and TCP. The peers do not stop either.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Host } from '../../support/labs/lab.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { Sequence } from '../../support/peers/sequence.ts'
import { unixNow } from '../../support/peers/traffic.ts'

const skip = canUseNamegate() ?? false

const SHOP = { name: 'www.shop.test', address4: '198.18.40.1', address6: '2001:db8:80::1' }
const ZONES = { names: { [SHOP.name]: [SHOP.address4, SHOP.address6] } }
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress:
    - toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '*.shop.test' }] } }]
    - toFQDNs: [{ matchPattern: '*.shop.test' }]
`
const FLOWS = [
  ['udp', SHOP.address4],
  ['udp', SHOP.address6],
  ['tcp', SHOP.address4],
] as const
/** Longer than the first retransmissions of TCP. */
const WATCH_MS = 2500

function batch(host: Host, lines: readonly string[]): void {
  execFileSync('ip', ['-n', host.namespace, '-batch', '-'], { input: lines.join('\n') })
}

describe('successor on an address', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate
  let pod: Host
  before(async () => {
    lab = podLab()
    pod = lab.pods[0]!.host
    lab.internet.sysctl('net.ipv6.ip_nonlocal_bind=1')
    await Promise.all([lab.startNameServer(ZONES), lab.startWebServer()])
    namegate = new Namegate(lab, {
      policies: { 'shop.yaml': POLICY },
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

  async function ask(): Promise<void> {
    const server = `@${lab.pods[0]!.gateway4}`
    const { stdout } = await pod.run('dig', ['+short', server, SHOP.name, 'A', SHOP.name, 'AAAA'])
    assert.deepEqual(stdout.trim().split('\n'), [SHOP.address4, SHOP.address6])
  }

  async function curl(address: string, seconds: number): Promise<string> {
    const args = ['-sS', '-o', '/dev/null', '-m', `${seconds}`, `http://${address}/`]
    const { code, stderr } = await pod.run('curl', args)
    return code === 0 ? 'reached' : stderr.trim()
  }

  /** Both addresses answer. TCP sends a lost SYN again after a second, so the limit is several seconds. */
  async function reachesBoth(): Promise<void> {
    for (const address of [SHOP.address4, `[${SHOP.address6}]`]) {
      const result = await curl(address, 15)
      if (result === 'reached') continue
      const neighbours = (await lab.node.run('ip', ['neigh'])).stdout
      assert.fail(`${result}; ${await namegate.stat('drop_policy')} drops; ${neighbours}`)
    }
  }

  async function isRefused(address: string): Promise<void> {
    assert.notEqual(await curl(address, 1), 'reached', address)
  }

  /** Replaces the veth by one with the same name and addresses. Returns how long the address had no veth, in ms. */
  function replacePod(): number {
    const began = performance.now()
    lab.node.ip('link', 'delete', 'lxc1')
    batch(lab.node, [
      `link add lxc1 type veth peer name eth0 netns ${pod.namespace}`,
      'address add 10.20.1.1/24 dev lxc1',
      'address add fd20:1::1/64 dev lxc1 nodad',
      'link set lxc1 up',
    ])
    batch(pod, [
      'address add 10.20.1.2/24 dev eth0',
      'address add fd20:1::2/64 dev eth0 nodad',
      'link set eth0 up',
      'route add default via 10.20.1.1',
      'route add default via fd20:1::1',
    ])
    return performance.now() - began
  }

  it('reaches nothing that the pod before it had learned, and continues none of its flows', async (t) => {
    await ask()
    await reachesBoth()
    const hosts = { from: pod, to: lab.internet }
    const flows: Sequence[] = []
    for (const [protocol, address] of FLOWS) {
      flows.push(await Sequence.open(hosts, protocol, address, 7000, 20))
    }
    const dropped = await namegate.stat('drop_policy')
    const took = replacePod()
    const replaced = unixNow()
    await isRefused(SHOP.address4)
    await isRefused(`[${SHOP.address6}]`)
    await sleep(WATCH_MS)
    for (const flow of flows) {
      const late = flow.atPeer.filter(({ time }) => time >= replaced)
      assert.deepEqual(late, [], `${flow.title}: no packet comes from the successor`)
    }
    const refused = (await namegate.stat('drop_policy')) - dropped
    assert.ok(refused > 100, `the sockets continued to send: ${refused} packets were refused`)
    t.diagnostic(`replaced in ${took.toFixed(0)} ms, ${refused} packets refused`)
  })

  it('starts without learned names, and learns its own', async () => {
    assert.deepEqual(await namegate.get('names'), [])
    await ask()
    await reachesBoth()
  })
})
