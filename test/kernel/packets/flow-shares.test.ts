// One pod sends 300,000 allowed UDP tuples as real packets, and another pod loses no late answer. Over nftables this is true while the
// kernel's connection tracking, one table for all, has room (docs/operations.md). NAMEGATE_SHORT_FLOWS=1000000 sends that many.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { compiled } from '../../support/peers/compiled.ts'
import { nftablesMaker } from '../../contract/nftables-bench.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'

const FLOWS = Number(process.env['NAMEGATE_SHORT_FLOWS'] ?? 300_000)
const FLOW_PORT = 7001
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: busy }
spec:
  endpointSelector: { matchLabels: { app: busy } }
  egress: [{ toCIDR: [198.19.0.0/16] }]
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: quiet }
spec:
  endpointSelector: { matchLabels: { app: quiet } }
  egress: [{}]
`
/** Receives one question, and answers it on a line of input. */
const SERVER = `
const socket = require('node:dgram').createSocket('udp4')
socket.on('message', (_, from) => {
  process.on('SIGUSR2', () => socket.send('late', from.port, from.address))
  console.log('asked')
})
socket.bind(9000, () => console.log('ready'))`
const CLIENT = `
const socket = require('node:dgram').createSocket('udp4')
socket.on('message', (text) => console.log(String(text)))
socket.send('question', 9000, process.argv[1])`

const VARIANTS = [
  { title: 'ebpf', datapath: undefined, skip: canUseNamegate() },
  {
    title: 'nftables',
    datapath: '{ kind: nftables }',
    skip: canUseNamegate() ?? nftablesMaker.unavailable,
  },
] as const

for (const { title, datapath, skip } of VARIANTS) {
  describe(`flows of two pods over ${title}`, { skip: skip ?? false }, () => {
    let program: string
    let lab: PodLab
    let namegate: Namegate

    before(async () => {
      program = compiled('short-flows')
      lab = podLab({ pods: 2 })
      namegate = new Namegate(lab, {
        policies: { 'two.yaml': POLICY },
        endpoints: ['busy', 'quiet'].map(
          (app, i) =>
            `{ name: ${app}, addresses: [10.20.${i + 1}.2], labels: { app: ${app} }, interface: lxc${i + 1} }`,
        ),
        ...(datapath === undefined ? {} : { datapath }),
      })
      // Otherwise the kernel forgets a question after 30 s, on a busy machine before all flows are made.
      lab.node.sysctl('net.netfilter.nf_conntrack_udp_timeout=180')
      await lab.startNameServer({ names: {} })
      const server = lab.internet.start(program, ['serve', String(FLOW_PORT)])
      await server.untilOutput(/^ready$/m)
      await namegate.start(datapath === undefined ? {} : { attached: [] })
    })

    after(async () => {
      await namegate.close()
      await lab.close()
    })

    const count = datapath === undefined ? FLOWS : Math.min(FLOWS, conntrackMax() / 2)

    it('lose no late answer, whatever the other pod sends', async (t) => {
      const [busy, quiet] = lab.pods
      assert.ok(busy !== undefined && quiet !== undefined)
      const server = quiet.host.start(process.execPath, ['-e', SERVER])
      await server.untilOutput(/^ready$/m)
      const client = lab.internet.start(process.execPath, ['-e', CLIENT, quiet.address4])
      await server.untilOutput(/^asked$/m)
      const args = ['udp', '198.19.0.0', '8192', String(FLOW_PORT), '10000', String(count)]
      const { code, stdout, stderr } = await busy.host.run(program, args, { limitMs: 180_000 })
      assert.equal(code, 0, stderr)
      assert.equal(Number(stdout), count)
      t.diagnostic(`${count} flows`)
      server.kill('SIGUSR2')
      await client.untilOutput(/^late$/m)
      await Promise.all([server.stop(), client.stop()])
      if (datapath !== undefined) return
      const { stdout: status } = await namegate.run('status')
      assert.match(status, /connections-per-endpoint/, 'the sending pod is at its bound')
    })
  })
}

function conntrackMax(): number {
  return Number(readFileSync('/proc/sys/net/netfilter/nf_conntrack_max', 'utf8'))
}
