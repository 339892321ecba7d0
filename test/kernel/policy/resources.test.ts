// External resources over the admin socket, with real packets: after the response to PUT the next packet passes, and after the response to
// DELETE the next one is dropped. By the eBPF programs and by nftables, IPv4 and IPv6, addresses and prefixes.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { nftablesMaker } from '../../contract/nftables-bench.ts'
import { http } from '../../support/nodes/admin.ts'
import { canUseLab } from '../../support/labs/lab.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { startEcho, Talk } from '../../support/peers/traffic.ts'

const PORT = 7000
const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: shop }, interface: lxc1 }"
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumClusterwideNetworkPolicy
metadata: { name: to-databases }
spec:
  endpointSelector: {}
  egress: [{ toEndpoints: [{ matchLabels: { tier: database } }] }]
`
/** The resource of PUT, and an address in it. */
const ROWS: readonly (readonly [put: string, tried: string])[] = [
  ['198.18.40.1', '198.18.40.1'],
  ['2001:db8:80::1', '2001:db8:80::1'],
  ['198.18.41.0/24', '198.18.41.9'],
  ['2001:db8:80:7::/64', '2001:db8:80:7::9'],
]
/** Shorter than TCP's first retransmission of a SYN. */
const CONNECT_S = '0.8'

const DATAPATHS = [
  { name: 'ebpf', skip: canUseNamegate() ?? false },
  { name: 'nftables', skip: canUseLab() ?? nftablesMaker.unavailable ?? false },
] as const

for (const { name, skip } of DATAPATHS) {
  describe(`resources of the admin API, ${name}`, { skip }, () => {
    let lab: PodLab
    let namegate: Namegate

    before(async () => {
      lab = podLab()
      const nftables = { datapath: '{ kind: nftables }' }
      namegate = new Namegate(lab, {
        policies: { 'web.yaml': POLICY },
        endpoints: [ENDPOINT],
        ...(name === 'nftables' ? nftables : {}),
      })
      await Promise.all([lab.startNameServer({ names: {} }), startEcho(lab.internet, PORT)])
      await namegate.start(name === 'nftables' ? { attached: [] } : {})
      await namegate.untilEnforced()
    })

    after(async () => {
      await namegate.close()
      await lab.close()
    })

    async function change(method: 'PUT' | 'DELETE', body?: object): Promise<void> {
      const socketPath = join(namegate.folder, 'admin.sock')
      const text = body === undefined ? {} : { body: JSON.stringify(body) }
      const answer = await http({ socketPath }, '/v1/resources/db', { method, ...text })
      assert.equal(answer.status, 200, answer.text)
    }

    async function reaches(address: string): Promise<boolean> {
      const pod = lab.pods[0]
      assert.ok(pod)
      const connect = `exec 3<>/dev/tcp/${address}/${PORT}`
      const { code } = await pod.host.run('timeout', [CONNECT_S, 'bash', '-c', connect])
      return code === 0
    }

    for (const [put, tried] of ROWS) {
      it(`opens ${put} after the response to PUT, and closes it after the response to DELETE`, async () => {
        await change('PUT', { addresses: [put], labels: { tier: 'database' } })
        assert.equal(await reaches(tried), true, 'after PUT')
        await change('DELETE')
        assert.equal(await reaches(tried), false, 'after DELETE')
      })
    }

    it('cuts an open connection when its labels are changed, and lets it continue when they are restored', async () => {
      const address = ROWS[0]?.[0] ?? ''
      const pod = lab.pods[0]
      assert.ok(pod)
      await change('PUT', { addresses: [address], labels: { tier: 'database' } })
      const talk = await Talk.open(pod.host, address, PORT)
      await change('PUT', { addresses: [address], labels: { tier: 'cache' } })
      await assert.rejects(async () => {
        // Packets that were on their way can still arrive.
        for (let i = 0; i < 3; i++) await talk.moves(2, 700)
      })
      await change('PUT', { addresses: [address], labels: { tier: 'database' } })
      await talk.moves(5, 15_000)
      await talk.stop()
      const { code, stdout } = await namegate.run('datapath', 'verify')
      assert.equal(code, 0, stdout)
      await change('DELETE')
    })
  })
}
