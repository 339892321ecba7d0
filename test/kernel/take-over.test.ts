// A take-over on the real kernel: flows that are allowed go on without a packet lost, what is denied stays denied, and
// names asked before, meanwhile and afterwards are enforced by whoever serves.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { PROGRAM } from '../support/daemon-process.ts'
import type { LabProcess } from '../support/lab-process.ts'
import { podLab, type PodLab } from '../support/lab-pod.ts'
import { canUseNamegate, Namegate } from '../support/lab-namegate.ts'
import { Sequence } from '../support/sequence.ts'
import { Probe, startEcho, Talk } from '../support/traffic.ts'

const skip = canUseNamegate() ?? false
const SHOP = { name: 'www.shop.test', address: '198.18.40.1' }
const LATER = { name: 'later.shop.test', address: '198.18.41.1' }
const DENIED = '198.18.66.6'
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

for (const kind of ['ebpf', 'nftables']) {
  describe(`run --take-over with ${kind}`, { skip }, () => {
    let lab: PodLab
    let namegate: Namegate
    let successor: LabProcess | undefined
    before(async () => {
      lab = podLab()
      lab.internet.sysctl('net.ipv6.ip_nonlocal_bind=1')
      const names = { [SHOP.name]: [SHOP.address], [LATER.name]: [LATER.address] }
      await Promise.all([lab.startNameServer({ names }), startEcho(lab.internet, 80, 8080)])
      namegate = new Namegate(lab, {
        policies: { 'shop.yaml': POLICY },
        endpoints: [
          '{ name: pod1, addresses: [10.20.1.2], labels: { app: shop }, interface: lxc1 }',
        ],
        ...(kind === 'ebpf' ? {} : { datapath: '{ kind: nftables }' }),
      })
      await namegate.start(kind === 'ebpf' ? {} : { attached: [] })
    })
    after(async () => {
      await successor?.stop()
      await namegate.close()
      await lab.close()
    })

    async function ask(name: string): Promise<string> {
      const [pod] = lab.pods
      const { stdout } = await pod!.host.run('dig', [
        '+short',
        '+tries=1',
        `@${pod!.gateway4}`,
        name,
      ])
      return stdout.trim()
    }

    it('goes on with flows, and opens nothing that is denied', async (t) => {
      const pod = lab.pods[0]!.host
      assert.equal(await ask(SHOP.name), SHOP.address)
      const talk = await Talk.open(pod, SHOP.address, 80)
      const flow = await Sequence.open(
        { from: pod, to: lab.internet },
        'udp',
        SHOP.address,
        7000,
        5,
      )
      const probe = await Probe.begin(pod, 20, DENIED, 80)
      const args = ['run', '--take-over', '--config', namegate.configFile]
      successor = lab.node.start(PROGRAM, args)
      const ended = await namegate.daemon.ended(60_000)
      assert.equal(ended?.code, 0, ended?.stderr)
      await talk.moves(10, 10_000)
      assert.equal(await ask(LATER.name), LATER.address)
      const later = await Talk.open(pod, LATER.address, 8080)
      await later.moves()
      await probe.stop()
      const numbers = new Set(flow.atPeer.map(({ number }) => number))
      const last = Math.max(...numbers)
      assert.ok(last > 100)
      const lost = Array.from({ length: last }, (_, i) => i + Math.min(...numbers)).filter(
        (number) => number <= last && !numbers.has(number),
      )
      t.diagnostic(
        `${numbers.size} messages, ${lost.length} lost; ${probe.attempts(80).length} probes`,
      )
      // One message of 1,580 was lost in one of five runs with nftables, on a machine six times overcommitted.
      assert.ok(lost.length <= (kind === 'ebpf' ? 0 : 2), `lost: ${lost.join()}`)
      assert.ok(probe.attempts(80).length > 0)
      assert.deepEqual(
        probe.attempts(80).filter(({ connected }) => connected),
        [],
      )
      assert.equal((await namegate.run('datapath', 'verify')).code, 0)
    })
  })
}
