// The behaviour of TPROXY on the real kernel. A pod asks servers that do not exist, or that would answer it, and gets its answer from
// namegate under the asked address. The host has a resolver on 0.0.0.0:53. The tests try every way past namegate with a server behind it
// that would answer, while rules are added and removed, and with the daemon stopped and killed. A variant installs the rules.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  askAll,
  assertAnswers,
  DATA,
  dig,
  NAME,
  NOWHERE,
  OTHER_DATA,
  OTHER_ZONES,
  TRANSPORTS,
  ZONES,
} from './asked-name.ts'
import type { Host } from './lab.ts'
import { DNS_4, DNS_6, OTHER_DNS_4, podLab, startHelper } from './lab-pod.ts'
import { canUseNamegate, Namegate } from './lab-namegate.ts'
import type { LabProcess } from './lab-process.ts'
import { Leaks } from './leaks.ts'

const FORGED = '10.20.9.9'
const LISTENER = '{ port: 10053, mode: tproxy }'
const ENDPOINT = `{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: pod1 }, interface: lxc1 }`
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: pod1 } }
  egress:
    - toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '*' }] } }]
    - toFQDNs: [{ matchPattern: '*.shop.test' }]
`

export interface TproxyVariant {
  readonly title: string
  /** Whether the eBPF programs fence the pod before any rule exists. */
  readonly fenced: boolean
  /** Adds the rules once the daemon serves, and removes them. */
  install(namegate: Namegate, node: Host): Promise<void>
  remove(namegate: Namegate, node: Host): Promise<void>
  /** More lines of the config. */
  readonly config: string
}

const skip = canUseNamegate() ?? false

export function tproxySuite(variant: TproxyVariant): void {
  const { fenced } = variant
  describe(variant.title, { skip }, () => {
    const lab = podLab()
    const { node, internet } = lab
    const pod = lab.pods[0]!.host
    const leaks = new Leaks(internet, ['10.20.0.0/16', 'fd20::/16'])
    const namegate = new Namegate(lab, {
      policies: { 'shop.yaml': POLICY },
      endpoints: [ENDPOINT],
      listenerItems: [LISTENER],
      ...(fenced ? {} : { datapath: '{ kind: memory }' }),
      config: variant.config,
    })
    const start = async () => await namegate.start({ attached: fenced ? ['lxc1'] : [] })
    let asker: LabProcess

    async function closed(during: () => Promise<unknown>): Promise<void> {
      assert.equal(await leaks.during(during), 0, 'packets that reached a server past namegate')
    }

    before(async () => {
      await lab.startNameServer(ZONES)
      await startHelper(internet, 'nameserver.ts', [OTHER_DNS_4, '853', JSON.stringify(ZONES)])
      await startHelper(node, 'nameserver.ts', ['0.0.0.0', '53', JSON.stringify(OTHER_ZONES)])
      pod.ip('address', 'add', `${FORGED}/32`, 'dev', 'eth0')
      asker = await startHelper(pod, 'kept-asker.ts', [OTHER_DNS_4, NAME, '50'])
    })
    after(async () => {
      await namegate.close()
      await lab.close()
    })

    it('reaches every server without interception, as the other tests assume', async () => {
      await assertAnswers(pod, [OTHER_DNS_4, DNS_6], DATA)
      await assertAnswers(pod, [OTHER_DNS_4], DATA, '-p', '853')
      await assertAnswers(pod, ['10.20.1.1'], OTHER_DATA)
      await asker.untilOutput(new RegExp(`^${OTHER_DNS_4} NOERROR ${DATA}$`, 'm'))
      assert.ok(leaks.count > 10)
    })

    it('answers from any asked address', async () => {
      await start()
      await variant.install(namegate, node)
      asker.stdout = ''
      await closed(async () => {
        const servers = [...NOWHERE, DNS_4, OTHER_DNS_4, DNS_6, '10.20.1.1', 'fd20:1::1']
        await assertAnswers(pod, servers, DATA)
        await asker.untilOutput(new RegExp(`^${OTHER_DNS_4} NOERROR ${DATA}$`, 'm'))
      })
    })

    it('assembles fragments, or drops them', async () => {
      await closed(async () => {
        const answer = await dig(pod, OTHER_DNS_4, `+ednsopt=65001:${'00'.repeat(2000)}`)
        assert.match(answer, fenced ? /^(?:198\.18\.40\.1|no answer)$/ : /^198\.18\.40\.1$/)
      })
    })

    it('drops queries from an address that is not the pod’s', async () => {
      await closed(async () => {
        assert.deepEqual(await askAll(pod, [OTHER_DNS_4], '-b', FORGED), ['no answer', 'no answer'])
      })
    })

    it('leaves port 853 to policy', { skip: fenced ? false : 'nothing fences' }, async () => {
      await closed(async () => {
        for (const transport of TRANSPORTS) {
          assert.equal(await dig(pod, OTHER_DNS_4, transport, '-p', '853'), 'no answer')
        }
      })
    })

    it('stays closed during a restart, and answers the same socket again', async () => {
      await closed(async () => {
        await namegate.stop()
        assert.equal(await dig(pod, OTHER_DNS_4), 'no answer')
        await start()
        asker.stdout = ''
        await asker.untilOutput(new RegExp(`^${OTHER_DNS_4} NOERROR ${DATA}$`, 'm'))
      })
    })

    it('stays closed after a kill', async () => {
      await closed(async () => {
        await namegate.kill()
        const answers = await askAll(pod, [OTHER_DNS_4, DNS_6])
        assert.deepEqual([...new Set(answers)], ['no answer'])
      })
    })

    it('without rules, policy judges DNS like any other port', async () => {
      const from = leaks.count
      await variant.remove(namegate, node)
      asker.stdout = ''
      if (fenced) {
        assert.equal(await dig(pod, OTHER_DNS_4), 'no answer')
        assert.equal(leaks.count - from, 0)
      } else {
        await asker.untilOutput(new RegExp(`^${OTHER_DNS_4} NOERROR ${DATA}$`, 'm'))
      }
    })
  })
}
