// The veth of a workload is deleted and made again under the same name, again and again, while the workload sends to an address that no
// policy allows. No packet arrives. As a control, packets arrive in the mode bypass.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { release } from 'node:os'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DatapathCounters } from '../../../src/datapath/abilities.ts'
import { readCounters } from '../../../src/datapath/ebpf/maps/reports.ts'
import { MAP_SHAPES } from '../../../src/datapath/ebpf/maps/layout.ts'
import { openMaps } from '../../../src/datapath/ebpf/maps/kernel-map.ts'
import { loadBpf } from '../../../src/native/native.ts'
import { until } from '../../support/peers/client.ts'
import type { Host } from '../../support/labs/lab.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'

/** The gate (src/datapath/ebpf/programs/gate.bpf.c) needs 6.4. Without it, the programs are attached a millisecond late. */
const [major = 0, minor = 0] = release().split('.').map(Number)
const isOld = major < 6 || (major === 6 && minor < 4)
const skip = canUseNamegate() ?? (isOld ? 'needs kernel 6.4' : false)

const ROUNDS = 200
const PORT = 9999
const TARGET_4 = '198.18.66.6'
const TARGET_6 = '2001:db8:80::66'

const NODE_MAC = '02:00:00:00:00:01'

/** Sends to both targets about 6,000 times a second, whatever errors the network returns. */
const SENDER = `
const dgram = require('dgram')
for (const [type, target] of [['udp4', '${TARGET_4}'], ['udp6', '${TARGET_6}']]) {
  const socket = dgram.createSocket(type)
  socket.on('error', () => undefined)
  socket.bind(0, () => setInterval(() => {
    for (let i = 0; i < 3; i++) socket.send('x', ${PORT}, target, () => undefined)
  }, 1))
}
console.log('ready')`

/** Counts packets that arrive, by family. */
const LISTENER = `
const dgram = require('dgram')
let bound = 0
for (const type of ['udp4', 'udp6']) {
  let count = 0, told = 0
  const socket = dgram.createSocket({ type, ipv6Only: type === 'udp6' })
  socket.on('message', () => count++)
  socket.bind(${PORT}, () => { if (++bound === 2) console.log('ready') })
  setInterval(() => { if (count !== told) console.log(type, told = count) }, 20)
}`

function batch(host: Host, lines: readonly string[]): void {
  execFileSync('ip', ['-n', host.namespace, '-batch', '-'], { input: lines.join('\n') })
}

describe('veth that is made again', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate
  let pod2: Host
  let listener: LabProcess
  /** Reads the kernel's counters through the pins. */
  let counters: () => DatapathCounters
  before(async () => {
    lab = podLab()
    pod2 = lab.lab.addHost('pod2')
    namegate = new Namegate(lab, {
      policies: {},
      config: 'default-egress: deny',
      endpoints: [
        "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }",
        "{ name: pod2, addresses: [10.20.2.2, 'fd20:2::2'], labels: { app: shop }, interface: lxc2 }",
      ],
    })
    await lab.startNameServer({ names: {} })
    await namegate.start()
    const bpf = loadBpf()
    const fds = Object.keys(MAP_SHAPES).map((name) => [name, bpf.openPin(namegate.pin(name))])
    const maps = openMaps(bpf, Object.fromEntries(fds))
    counters = () => readCounters(bpf, maps)
    listener = lab.internet.start(process.execPath, ['-e', LISTENER])
    const sender = pod2.start(process.execPath, ['-e', SENDER])
    await Promise.all([listener.untilOutput(/^ready$/m), sender.untilOutput(/^ready$/m)])
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  /** Pod first: the pod is complete before the node's end is up. Node first: the node's end is up at once. */
  function makeLink(order: 'pod first' | 'node first'): void {
    const { node } = lab
    const inPod = [
      'address add 10.20.2.2/24 dev eth0',
      'address add fd20:2::2/64 dev eth0 nodad',
      'link set eth0 up',
      // The neighbours are fixed, so the pod's packets leave at once.
      `neigh add 10.20.2.1 lladdr ${NODE_MAC} dev eth0`,
      `neigh add fd20:2::1 lladdr ${NODE_MAC} dev eth0`,
      'route add default via 10.20.2.1',
      'route add default via fd20:2::1',
    ]
    const inNode = [
      'link set lxc2 up',
      'address add 10.20.2.1/24 dev lxc2',
      'address add fd20:2::1/64 dev lxc2 nodad',
    ]
    if (order === 'pod first') {
      const peer = `peer name lxc2 address ${NODE_MAC} netns ${node.namespace}`
      batch(pod2, [`link add eth0 type veth ${peer}`, ...inPod])
      batch(node, inNode)
    } else {
      const peer = `peer name eth0 netns ${pod2.namespace}`
      batch(node, [`link add lxc2 address ${NODE_MAC} type veth ${peer}`, ...inNode])
      batch(pod2, inPod)
    }
  }

  /** Packets that arrived so far. */
  function arrived(type: 'udp4' | 'udp6'): number {
    return Number(
      [...listener.stdout.matchAll(/^(udp[46]) (\d+)$/gm)].findLast(
        ([, kind]) => kind === type,
      )?.[2] ?? 0,
    )
  }

  function dropped(): number {
    const { drop_policy: policy, drop_no_endpoint: nobody, drop_source: source } = counters()
    return (policy ?? 0) + (nobody ?? 0) + (source ?? 0)
  }

  /** Makes the link. Returns when the pod has sent packets and the kernel has refused them. */
  async function makeAndSend(round: number): Promise<void> {
    const before = dropped()
    makeLink(round % 2 === 0 ? 'pod first' : 'node first')
    const deadline = performance.now() + 5000
    while (dropped() === before) {
      assert.ok(performance.now() < deadline, `round ${round}: nothing was sent in 5 s`)
      await sleep(1)
    }
  }

  it('lets nothing past policy, however often it is made', async (t) => {
    const first = dropped()
    for (let round = 0; round < ROUNDS; round++) {
      await makeAndSend(round)
      lab.node.ip('link', 'delete', 'lxc2')
    }
    t.diagnostic(`${ROUNDS} times made, ${dropped() - first} packets refused`)
    assert.deepEqual([arrived('udp4'), arrived('udp6')], [0, 0])
  })

  it('lets nothing past policy while the daemon is stopped and attaches nothing', async () => {
    for (let round = 0; round < 6; round++) {
      namegate.daemon.kill('SIGSTOP')
      await makeAndSend(round)
      await sleep(50)
      namegate.daemon.kill('SIGCONT')
      lab.node.ip('link', 'delete', 'lxc2')
    }
    assert.deepEqual([arrived('udp4'), arrived('udp6')], [0, 0])
  })

  it('passes packets in the mode bypass, so the counters work', async () => {
    assert.equal((await namegate.run('datapath', 'mode', 'bypass')).code, 0)
    makeLink('pod first')
    await until('packets of both', () => arrived('udp4') > 0 && arrived('udp6') > 0, 15_000, 20)
  })
})
