// Two daemons have pins of their own and share an interface. The programs on the interface belong to the daemon that attached them. While
// that daemon runs, no other daemon replaces them, and `datapath detach` with the config of the other leaves them.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const SHARED = '{ name: pod1, addresses: [10.20.1.2], labels: { app: shop }, interface: lxc1 }'
const APART = '{ name: pod2, addresses: [10.20.2.2], labels: { app: shop }, interface: lxc2 }'
/** Each daemon takes a free port for its metrics. */
const METRICS = 'metrics: { port: 0 }'

describe(
  'namegate run beside another daemon with other pins',
  { skip: canUseNamegate() ?? false },
  () => {
    let lab: PodLab
    let first: Namegate
    let second: Namegate
    before(async () => {
      lab = podLab({ pods: 2 })
      await lab.startNameServer({})
      first = new Namegate(lab, mkOptions('10.20.1.1', SHARED))
      second = new Namegate(lab, mkOptions('10.20.2.1', SHARED))
      await first.start({ attached: ['lxc1'] })
    })
    after(async () => {
      await second.close()
      await first.close()
      await lab.close()
    })

    /** Ids of the programs on lxc1. */
    async function programs(): Promise<readonly string[]> {
      const sides = ['ingress', 'egress'].map(async (side) => {
        const { stdout } = await lab.node.run('tc', ['filter', 'show', 'dev', 'lxc1', side])
        return / id (\d+) /.exec(stdout)?.[1] ?? 'none'
      })
      return await Promise.all(sides)
    }

    async function isRefused(): Promise<void> {
      const carried = await programs()
      const { code, stderr } = await second.run('run')
      assert.deepEqual([code, stderr.trim().split('\n').length], [3, 1], stderr)
      assert.match(
        stderr,
        new RegExp(
          `Cannot start: interface lxc1 has the programs of the namegate with pin path ${first.pinPath}: ` +
            'stop that one, or give each of them interfaces of its own',
        ),
      )
      assert.deepEqual(await programs(), carried)
    }

    it('refuses an interface of an endpoint', isRefused)

    it('refuses an interface that a pattern of listeners names', async () => {
      const listener = "{ port: 10053, mode: tproxy, interfaces: ['lxc1*'] }"
      second.writeConfig({
        policies: {},
        endpoints: [APART],
        listenerItems: [listener],
        config: METRICS,
      })
      await isRefused()
    })

    it('starts with interfaces of its own', async () => {
      second.writeConfig(mkOptions('10.20.2.1', APART))
      await second.start({ attached: ['lxc2'] })
      await second.stop()
    })

    it('replaces the programs of a daemon that ended', async () => {
      await first.kill()
      const carried = await programs()
      second.writeConfig(mkOptions('10.20.2.1', SHARED))
      await second.start({ attached: ['lxc1'] })
      assert.notDeepEqual(await programs(), carried)
      await second.kill()
      await first.start({ attached: ['lxc1'] })
    })

    it('datapath detach leaves the programs of the other', async () => {
      const carried = await programs()
      assert.ok(!carried.includes('none'))
      // A running daemon would attach them again at once.
      first.daemon.kill('SIGSTOP')
      const { code, stderr } = await second.run('datapath', 'detach')
      assert.equal(code, 0, stderr)
      assert.equal(existsSync(second.pinPath), false)
      assert.deepEqual(await programs(), carried)
      first.daemon.kill('SIGCONT')
      const own = await first.run('datapath', 'detach')
      assert.equal(own.code, 0, own.stderr)
      assert.deepEqual(await programs(), ['none', 'none'])
    })
  },
)

function mkOptions(listener: string, endpoint: string) {
  return { policies: {}, endpoints: [endpoint], listeners: [listener], config: METRICS }
}
