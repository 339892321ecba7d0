// A pod goes and another gets its interface's name and its address at once: nothing of what the first one learned or had
// open is the second one's. The second one lives in the first one's network namespace, so its kernel still has the
// first one's sockets and goes on sending on their very tuples, by UDP as by TCP; and the peers never stop either.

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
/** Longer than TCP waits before it sends again the first few times. */
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

  /** Both addresses answer. TCP sends a lost SYN again after a second, so the limit is several times that. */
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

  /** The old veth goes, one of the same name and address comes; how long the address was nobody's, in ms. */
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

  it('reaches nothing that the one before had learned, and continues none of its flows', async (t) => {
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
      assert.deepEqual(late, [], `${flow.title}: nothing comes from the successor`)
    }
    const refused = (await namegate.stat('drop_policy')) - dropped
    assert.ok(refused > 100, `it went on sending: ${refused} packets were refused`)
    t.diagnostic(`replaced in ${took.toFixed(0)} ms, ${refused} packets refused`)
  })

  it('has learned nothing yet, and learns for itself', async () => {
    assert.deepEqual(await namegate.json('get', 'names'), [])
    await ask()
    await reachesBoth()
  })
})
