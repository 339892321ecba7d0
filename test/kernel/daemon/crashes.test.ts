// The daemon is killed at random moments while it learns. Its files stay readable, label sets keep their numbers, allowed connections are
// never lost, and denied connections never pass. NAMEGATE_CRASHES sets the number of crashes (3 in the test suite).

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startBurst } from '../../support/peers/burst.ts'
import { podLab, type Pod, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { Random } from '../../support/models/random.ts'
import { Probe, startEcho } from '../../support/peers/traffic.ts'

const skip = canUseNamegate() ?? false
const CRASHES = Number(process.env['NAMEGATE_CRASHES'] ?? 3)
const SEED = Number(process.env['NAMEGATE_SEED'] ?? 20261121)
/** Names that the client asks during one round: more than the daemon can answer before it is killed. */
const NAMES = 20_000

const SHOP = { name: 'one.shop.test', address: '198.18.40.1' }
const DENIED = '198.18.66.6'
const PORT = 7000
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: wild }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [{ toFQDNs: [{ matchName: ${SHOP.name} }, { matchPattern: '**.shop.test' }, { matchPattern: 'n*9.crash*.shop.test' }] }]
`

describe('namegate killed again and again while it learns', { skip }, () => {
  let lab: PodLab
  let pod: Pod
  let namegate: Namegate
  before(async () => {
    lab = podLab()
    pod = lab.pods[0]!
    const fresh = { 'shop.test': { first4: '198.18.128.0' } }
    await Promise.all([
      lab.startNameServer({ names: { [SHOP.name]: [SHOP.address] }, fresh, ttl: 3600 }),
      startEcho(lab.internet, PORT),
    ])
    namegate = new Namegate(lab, {
      policies: { 'wild.yaml': POLICY },
      endpoints: ['{ name: pod1, addresses: [10.20.1.2], labels: { app: shop }, interface: lxc1 }'],
    })
    await namegate.start()
    await pod.host.run('dig', ['+short', '+tries=1', `@${pod.gateway4}`, SHOP.name])
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  /** Asks new names, and kills namegate some time after its first answer. */
  async function crash(round: number, afterMs: number): Promise<void> {
    const suffix = `crash${round}.shop.test`
    const known = namegate.prefixes().size
    const asker = startBurst(pod.host, pod.gateway4, suffix, NAMES)
    while (namegate.prefixes().size === known) await sleep(10)
    await sleep(afterMs)
    await namegate.kill()
    await asker.stop()
  }

  it(
    `continues with the same numbers, ${CRASHES} times`,
    { timeout: 120_000 + CRASHES * 15_000 },
    async (t) => {
      const random = new Random(SEED)
      const allowed = await Probe.begin(pod.host, 50, SHOP.address, PORT)
      const denied = await Probe.begin(pod.host, 50, DENIED, PORT)
      await allowed.untilConnected(PORT, 0)
      let kept = 0
      for (let round = 1; round <= CRASHES; round++) {
        await crash(round, random.below(400))
        const before = namegate.prefixes()
        await namegate.start()
        const now = namegate.prefixes()
        const moved = [...before].filter(([prefix, id]) => now.get(prefix) !== id)
        assert.deepEqual(moved, [], `round ${round}, seed ${SEED}`)
        kept = before.size
      }
      await Promise.all([allowed.stop(), denied.stop()])
      const lost = allowed.attempts(PORT).filter(({ connected }) => !connected)
      const passed = denied.attempts(PORT).filter(({ connected }) => connected)
      assert.deepEqual([lost, passed], [[], []])
      t.diagnostic(
        `${CRASHES} crashes, ${kept} addresses before the last; 0 of ${allowed.attempts(PORT).length} lost, 0 of ${denied.attempts(PORT).length} denied connections passed`,
      )
      const { code, stdout } = await namegate.run('datapath', 'verify')
      assert.equal(code, 0, stdout)
    },
  )

  it('leaves readable files', async () => {
    const folder = join(namegate.folder, 'state')
    await namegate.stop()
    const files = readdirSync(folder).filter((name) => /^(checkpoint|journal)\.\d+$/.test(name))
    assert.ok(files.length > 0)
    for (const file of files) {
      const { code, stdout, stderr } = await namegate.run('state', 'check', join(folder, file))
      // A journal can end in the middle of a record, or before its first record.
      const isCut = /end of|found 0 octets/.test(stdout + stderr)
      assert.ok(code === 0 || isCut, `${file}: ${stdout}${stderr}`)
    }
  })
})
