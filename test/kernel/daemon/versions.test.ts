// Upgrade to the next version and back, while flows continue. The next version has another format of state files, other texts of labels and
// another layout of eBPF maps. Allowed flows lose no packet, denied ones never pass, and each version knows what the version before
// learned. NAMEGATE_PREVIOUS names the folder of a built tree of an earlier version, with which the last test begins.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { LAYOUT_VERSION } from '../../../src/datapath/ebpf/maps/layout.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { NextVersion } from '../../support/labs/next-version.ts'
import { UdpStream } from '../../support/peers/udp-stream.ts'

const NAMES = { 'one.shop.test': ['198.18.40.1'], 'two.shop.test': ['198.18.41.1'] }
const [ONE, TWO] = ['198.18.40.1', '198.18.41.1']
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress:
    - toFQDNs: [{ matchPattern: '*.shop.test' }, { matchName: two.shop.test }]
      toPorts: [{ ports: [{ port: '7001', protocol: UDP }] }]
`

interface Entry {
  readonly prefix: string
  readonly identity: number
  readonly labels: readonly string[]
}

const PREVIOUS = process.env['NAMEGATE_PREVIOUS'] ?? ''

describe('namegate of another version', { skip: canUseNamegate() ?? false }, () => {
  let lab: PodLab
  let namegate: Namegate
  before(async () => {
    lab = podLab()
    await lab.startNameServer({ names: NAMES, ttl: 3600 })
    namegate = new Namegate(lab, {
      policies: { 'shop.yaml': POLICY },
      endpoints: ['{ name: pod1, addresses: [10.20.1.2], labels: { app: shop }, interface: lxc1 }'],
    })
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  async function ask(name: keyof typeof NAMES): Promise<void> {
    const pod = lab.pods[0]!
    const { stdout } = await pod.host.run('dig', ['+short', `@${pod.gateway4}`, name])
    assert.equal(stdout.trim(), NAMES[name][0])
  }

  async function entryOf(prefix: string): Promise<Entry | undefined> {
    const entries = (await namegate.get('ipcache')) as readonly Entry[]
    return entries.find((entry) => entry.prefix === prefix)
  }

  /** Sends flows to known addresses and a denied flow, while `change` runs. */
  async function streams(addresses: readonly string[], change: () => Promise<void>) {
    const stream = await UdpStream.start({
      from: lab.pods[0]!.host,
      to: lab.internet,
      rate: 2000,
      sockets: 4,
      targets: [
        ...addresses.map((address) => ({ address, port: 7001, isAllowed: true })),
        { address: ONE, port: 7009, isAllowed: false },
      ],
    })
    await change()
    return await stream.stop()
  }

  it('continues with what the version before knew, in both directions, without a lost packet', async (t) => {
    const next = new NextVersion()
    t.after(() => {
      next.close()
    })
    await namegate.start()
    await ask('one.shop.test')
    const before = await entryOf(`${ONE}/32`)
    assert.ok(before !== undefined)
    const up = await streams([ONE], async () => {
      await namegate.stop()
      await namegate.start({ command: next.command })
    })
    t.diagnostic(`up: ${up.lost} of ${up.sent} lost, ${up.passed} of ${up.forbidden} denied passed`)
    assert.deepEqual([up.lost, up.passed], [0, 0])
    const after = await entryOf(`${ONE}/32`)
    assert.equal(after?.identity, before.identity)
    assert.notDeepEqual(
      after.labels,
      before.labels,
      'the next version writes labels in another form',
    )
    assert.ok(existsSync(join(namegate.pinPath, `v${LAYOUT_VERSION + 1}`, 'ng_ipcache')))
    await ask('two.shop.test')
    const down = await streams([ONE, TWO], async () => {
      await namegate.stop()
      await namegate.start()
    })
    t.diagnostic(
      `down: ${down.lost} of ${down.sent} lost, ${down.passed} of ${down.forbidden} denied passed`,
    )
    assert.deepEqual([down.lost, down.passed], [0, 0])
    assert.deepEqual(await entryOf(`${ONE}/32`), before)
    assert.match(namegate.daemon.stderr, /newer version of namegate/)
    assert.equal((await namegate.run('datapath', 'verify')).code, 0)
  })

  it(
    'reads what an earlier version left, without a lost packet',
    { skip: PREVIOUS === '' ? 'NAMEGATE_PREVIOUS names no built tree' : false },
    async (t) => {
      await namegate.stop()
      await namegate.run('datapath', 'detach')
      await namegate.start({ command: join(PREVIOUS, 'bin/namegate') })
      await ask('one.shop.test')
      const before = await entryOf(`${ONE}/32`)
      assert.ok(before !== undefined)
      const up = await streams([ONE], async () => {
        await namegate.stop()
        await namegate.start()
      })
      t.diagnostic(`${up.lost} of ${up.sent} lost, ${up.passed} of ${up.forbidden} denied passed`)
      assert.deepEqual([up.lost, up.passed], [0, 0])
      assert.deepEqual(await entryOf(`${ONE}/32`), before)
      assert.equal((await namegate.run('datapath', 'verify')).code, 0)
      await ask('two.shop.test')
      for (const command of [join(PREVIOUS, 'bin/namegate'), undefined]) {
        const way = await streams([ONE, TWO], async () => {
          await namegate.stop()
          await namegate.start(command === undefined ? {} : { command })
        })
        const name = command === undefined ? 'up again' : 'down'
        t.diagnostic(`${name}: ${way.lost} of ${way.sent} lost, ${way.passed} denied passed`)
        assert.equal(way.passed, 0, name)
        // Layout 3 begins without the addresses of layout 4, and writes them again from its state.
        if (command === undefined) assert.equal(way.lost, 0, name)
        assert.deepEqual(await entryOf(`${ONE}/32`), before, name)
        assert.equal((await namegate.run('datapath', 'verify')).code, 0, name)
      }
    },
  )
})
