// Another program flushes all rules of the network namespace again and again while a daemon intercepts. Each time the daemon restores both
// tables within the promise of docs/away.md, with every datapath. So `in force` is wrong for at most that time.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { nftablesMaker } from '../../contract/nftables-bench.ts'
import { outputIn, runIn } from '../../support/labs/intercept-lab.ts'
import { canUseLab } from '../../support/labs/lab.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { DNS_4, podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const ENDPOINT =
  "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: a }, interface: lxc1 }"
const DELETE = 'nft delete table inet namegate_intercept'
const FLUSH = 'nft flush ruleset'
const ROWS = [FLUSH, FLUSH, DELETE, FLUSH, DELETE, DELETE, FLUSH, FLUSH]
/** It takes a second or two. The machine can be busy. */
const LIMIT_MS = 60_000
/** The pause between two rows, so that the repair of the last one has ended. */
const PAUSE_MS = 1500
const NAME = 'www.shop.test'

const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: a }
spec:
  endpointSelector: { matchLabels: { app: a } }
  egress: [{ toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchName: other.test }] } }] }]
`

interface Kind {
  readonly name: string
  readonly skip: string | undefined
  readonly datapath?: string
}

const KINDS: readonly Kind[] = [
  { name: 'ebpf', skip: canUseNamegate() },
  {
    name: 'nftables',
    skip: canUseLab() ?? nftablesMaker.unavailable,
    datapath: '{ kind: nftables }',
  },
]

describe('interception under rules that are flushed again and again', () => {
  for (const { name, skip, datapath } of KINDS) {
    describe(name, { skip: skip ?? false, timeout: 280_000 }, () => {
      let lab: PodLab
      let namegate: Namegate

      before(async () => {
        lab = podLab()
        await lab.startNameServer({ names: { [NAME]: ['198.18.40.1'] } })
        namegate = new Namegate(lab, {
          policies: { 'a.yaml': POLICY },
          endpoints: [ENDPOINT],
          listenerItems: ['{ port: 10053, mode: tproxy }'],
          config: 'intercept: { on-start: true }',
          ...(datapath !== undefined && { datapath }),
        })
        await namegate.start(datapath === undefined ? {} : { attached: [] })
      })

      after(async () => {
        await namegate.close()
        await lab.close()
      })

      function isThere(): boolean {
        const list = ['nft', 'list', 'table', 'inet', 'namegate_intercept']
        return /tproxy/.test(runIn(lab.node, list).stdout)
      }

      async function says(): Promise<string> {
        return String((await namegate.status())['interception'])
      }

      /** Waits until interception is restored. The failure has the state that the daemon reports. */
      async function untilBack(what: string): Promise<void> {
        const deadline = performance.now() + LIMIT_MS
        while (!isThere()) {
          if (performance.now() < deadline) await sleep(20)
          else assert.fail(`${what}: away after ${LIMIT_MS} ms; status: ${await says()}`)
        }
      }

      it('restores interception each time', async () => {
        for (const [i, row] of ROWS.entries()) {
          const what = `row ${i + 1}, ${row}`
          outputIn(lab.node, ...row.split(' '))
          await untilBack(what)
          await sleep(PAUSE_MS)
          assert.ok(isThere(), `${what}: it stays`)
          assert.match(await says(), /^in force/, what)
        }
      })

      it('restores interception when rules are flushed during a repair', async () => {
        for (const pause of [10, 40, 80, 150, 300]) {
          outputIn(lab.node, ...FLUSH.split(' '))
          await sleep(pause)
          outputIn(lab.node, ...FLUSH.split(' '))
          await untilBack(`two flushes, ${pause} ms apart`)
          await sleep(PAUSE_MS)
          assert.ok(isThere(), `${pause} ms: it stays`)
        }
      })

      it('still decides about queries to any server', async () => {
        const args = ['+tries=3', '+time=5', `@${DNS_4}`, NAME]
        const { stdout } = await lab.pods[0]!.host.run('dig', args)
        assert.match(stdout, /status: REFUSED/, stdout)
      })
    })
  }
})
