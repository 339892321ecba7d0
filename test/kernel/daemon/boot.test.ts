// A machine that boots has neither pins nor tables. Before the network is up, `namegate datapath close` closes the workloads that the last
// daemon recorded, also if their interfaces are still missing and endpoints files cannot be read. Until the daemon has loaded policy, no
// packet of such a workload reaches the peer, which counts every packet.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { release } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { nftablesMaker } from '../../contract/nftables-bench.ts'
import {
  BOOT_PORT as PORT,
  Counter,
  receivedIn,
  startSender,
} from '../../support/peers/boot-traffic.ts'
import { canUseLab } from '../../support/labs/lab.ts'
import { podLab, type Pod, type PodLab } from '../../support/labs/lab-pod.ts'
import type { NamegateOptions } from '../../support/labs/lab-namegate-config.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { Probe, startEcho } from '../../support/peers/traffic.ts'

/** Closing interfaces by name needs kernel 6.4 (src/datapath/ebpf/programs/gate.bpf.c). */
const [major = 0, minor = 0] = release().split('.').map(Number)
const isOld = major < 6 || (major === 6 && minor < 4)

const SHOP = { name: 'www.shop.test', address4: '198.18.40.1', address6: '2001:db8:80::1' }
const DENIED = { address4: '198.18.66.6', address6: '2001:db8:80::66' }
const OPTIONS: NamegateOptions = {
  policies: {
    'shop.yaml': `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [{ toFQDNs: [{ matchPattern: '*.shop.test' }] }]
`,
  },
  endpoints: [
    "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }",
  ],
}

const ADDRESSES = [SHOP, DENIED].flatMap(({ address4, address6 }) => [address4, address6])

/** Makes the veth of the pod, as a runtime does when it starts the pod. */
function makeVeth(lab: PodLab, pod: Pod): void {
  lab.lab.link(
    {
      host: lab.node,
      interface: pod.interface,
      addresses: [`${pod.gateway4}/24`, `${pod.gateway6}/64`],
    },
    { host: pod.host, interface: 'eth0', addresses: [`${pod.address4}/24`, `${pod.address6}/64`] },
  )
  pod.host.ip('route', 'add', 'default', 'via', pod.gateway4)
  pod.host.ip('-6', 'route', 'add', 'default', 'via', pod.gateway6)
}

/** Packets that the node received on an interface. */
function received({ node }: PodLab, name: string): number {
  return receivedIn(node.ip('-s', '-j', 'link', 'show', name))
}

async function ask(pod: Pod): Promise<void> {
  for (const [type, expected] of [
    ['A', SHOP.address4],
    ['AAAA', SHOP.address6],
  ] as const) {
    const args = ['+short', '+tries=3', `@${pod.gateway4}`, SHOP.name, type]
    const { stdout } = await pod.host.run('dig', args)
    assert.equal(stdout.trim(), expected)
  }
}

async function connects(pod: Pod, address: string): Promise<void> {
  const probe = await Probe.begin(pod.host, 50, address, PORT)
  await probe.untilConnected(PORT, 0, 10_000)
  await probe.stop()
}

interface Boot {
  readonly kind: 'ebpf' | 'nftables'
  /** The endpoints files exist during the boot. */
  readonly hasFiles: boolean
}

async function boot({ kind, hasFiles }: Boot, tell: (text: string) => void): Promise<void> {
  const lab = podLab()
  const options = { ...OPTIONS, ...(kind === 'ebpf' ? {} : { datapath: '{ kind: nftables }' }) }
  const namegate = new Namegate(lab, options)
  const attached = kind === 'ebpf' ? {} : { attached: [] }
  const counter = new Counter(lab.internet)
  try {
    const pod = lab.pods[0]!
    const names = { [SHOP.name]: [SHOP.address4, SHOP.address6] }
    await Promise.all([lab.startNameServer({ names }), startEcho(lab.internet, PORT)])
    await namegate.start(attached)
    await ask(pod)
    await connects(pod, SHOP.address4)

    // A reboot removes this.
    await namegate.stop()
    lab.node.ip('link', 'del', pod.interface)
    if (kind === 'ebpf') rmSync(namegate.pinPath, { recursive: true })
    else await lab.node.run('nft', ['delete', 'table', 'inet', 'namegate'])
    if (!hasFiles) rmSync(join(namegate.folder, 'endpoints.yaml'))

    const closed = await namegate.run('datapath', 'close')
    assert.equal(closed.code, 0, closed.stderr)
    assert.match(closed.stdout, /^closed: pod1\ninterface missing, closed when it appears: pod1\n$/)
    if (!hasFiles)
      assert.match(
        closed.stderr,
        /endpoints\.yaml.*\nclosed the endpoints that the last daemon recorded/,
      )
    await counter.begin(ADDRESSES)
    const sender = await startSender(pod.host, ADDRESSES)
    makeVeth(lab, pod)
    await sender.until(
      () => (received(lab, pod.interface) > 400 ? true : undefined),
      'expected 400 packets at the node',
    )
    assert.deepEqual(Object.values(await counter.read()), [0, 0, 0, 0])
    tell(`${received(lab, pod.interface)} packets left the pod, 0 reached the peer`)

    namegate.writeConfig(options)
    await namegate.start(attached)
    await ask(pod)
    await connects(pod, SHOP.address4)
    await connects(pod, SHOP.address6)
    const seen = await counter.read()
    assert.equal(seen[DENIED.address4], 0)
    assert.equal(seen[DENIED.address6], 0)
    // The sender and the counter work: with bypass, packets arrive.
    await namegate.run('datapath', 'mode', 'bypass')
    await connects(pod, DENIED.address4)
    const open = await counter.read()
    assert.ok((open[DENIED.address4] ?? 0) > 0)
  } finally {
    await namegate.close()
    await lab.close()
  }
}

describe('namegate datapath close after a reboot', () => {
  const ebpf = canUseNamegate() ?? (isOld ? 'needs kernel 6.4' : false)
  it('lets no packet out before the daemon, eBPF', { skip: ebpf, timeout: 280_000 }, async (t) => {
    await boot({ kind: 'ebpf', hasFiles: true }, (text) => t.diagnostic(text))
  })

  const nftables = canUseLab() ?? nftablesMaker.unavailable ?? false
  it(
    'lets no packet out before the daemon, nftables, endpoints files unreadable',
    { skip: nftables, timeout: 280_000 },
    async (t) => {
      await boot({ kind: 'nftables', hasFiles: false }, (text) => t.diagnostic(text))
    },
  )
})
