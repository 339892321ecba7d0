// Pods behind a bridge whose gateway is the node. What they send to the gateway is intercepted like any query. What they send to another
// pod of the bridge passes no router. The eBPF programs block a resolver there at the port, and the rules block it at the bridge.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  askAll,
  DATA,
  dig,
  NOWHERE,
  OTHER_DATA,
  OTHER_ZONES,
  ZONES,
} from '../../support/labs/asked-name.ts'
import {
  BRIDGE_GATEWAY_4,
  BRIDGE_GATEWAY_6,
  bridgeLab,
  type BridgeLab,
} from '../../support/labs/lab-bridge.ts'
import { DNS_4, DNS_6, OTHER_DNS_4, startHelper } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { Leaks } from '../../support/labs/leaks.ts'

const NEIGHBOUR = ['10.30.0.3', 'fd30::3'] as const
const ENDPOINT = `{ name: pod1, addresses: [10.30.0.2, 'fd30::2'], labels: { app: pod1 }, interface: veth1 }`
const POLICY = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop }
spec:
  endpointSelector: { matchLabels: { app: pod1 } }
  egress: [{ toPorts: [{ ports: [{ port: '53', protocol: ANY }], rules: { dns: [{ matchPattern: '*' }] } }] }]
`

const skip = canUseNamegate() ?? false

for (const fenced of [true, false]) {
  describe(`tproxy behind a bridge, ${fenced ? 'under eBPF' : 'by rules alone'}`, { skip }, () => {
    let lab: BridgeLab
    let namegate: Namegate
    let onBridge: Leaks
    let outside: Leaks

    /** Asks every server at once, over UDP and TCP. Lists each different answer once. */
    async function answersOf(servers: readonly string[]): Promise<readonly string[]> {
      return [...new Set(await askAll(lab.pods[0]!.host, servers))]
    }

    before(async () => {
      lab = bridgeLab()
      namegate = new Namegate(lab, {
        policies: { 'shop.yaml': POLICY },
        endpoints: [ENDPOINT],
        listenerItems: ['{ port: 10053, mode: tproxy }'],
        ...(fenced ? {} : { datapath: '{ kind: memory }' }),
      })
      await startHelper(lab.internet, 'nameserver.ts', [
        [DNS_4, DNS_6, OTHER_DNS_4].join(),
        '53',
        JSON.stringify(ZONES),
      ])
      await startHelper(lab.pods[1]!.host, 'nameserver.ts', [
        NEIGHBOUR.join(),
        '53',
        JSON.stringify(OTHER_ZONES),
      ])
      onBridge = new Leaks(lab.pods[1]!.host, ['10.30.0.0/24', 'fd30::/64'])
      outside = new Leaks(lab.internet, ['10.30.0.0/24', 'fd30::/64'])
    })
    after(async () => {
      await namegate.close()
      await lab.close()
    })

    it('reaches a resolver on the bridge without interception', async () => {
      assert.deepEqual(await answersOf(NEIGHBOUR), [OTHER_DATA])
      assert.deepEqual(await answersOf([OTHER_DNS_4, DNS_6]), [DATA])
      assert.ok(onBridge.count > 0)
      assert.ok(outside.count > 0)
    })

    it('gets answers from the asked address, and none from the resolver on the bridge', async () => {
      await namegate.start({ attached: fenced ? ['veth1'] : [] })
      const { code, stderr } = await namegate.run('intercept', 'up')
      assert.deepEqual([code, stderr], [0, ''])
      const from = [onBridge.count, outside.count]
      const gateways = [BRIDGE_GATEWAY_4, BRIDGE_GATEWAY_6]
      assert.deepEqual(await answersOf([...NOWHERE, OTHER_DNS_4, DNS_6, ...gateways]), [DATA])
      assert.deepEqual(await answersOf(NEIGHBOUR), ['no answer'])
      assert.equal(
        await dig(lab.pods[0]!.host, NEIGHBOUR[0], `+ednsopt=65001:${'00'.repeat(2000)}`),
        'no answer',
      )
      assert.deepEqual([onBridge.count, outside.count], from)
    })

    it('has queries to its neighbour intercepted when they pass the gateway', async () => {
      const pod = lab.pods[0]!.host
      pod.ip('route', 'add', NEIGHBOUR[0], 'via', BRIDGE_GATEWAY_4)
      pod.ip('-6', 'route', 'add', NEIGHBOUR[1], 'via', BRIDGE_GATEWAY_6)
      const from = onBridge.count
      assert.deepEqual(await answersOf(NEIGHBOUR), [DATA])
      assert.equal(onBridge.count, from)
    })

    it('stays closed on the bridge when the daemon is killed', async () => {
      await namegate.kill()
      lab.pods[0]!.host.ip('route', 'del', NEIGHBOUR[0], 'via', BRIDGE_GATEWAY_4)
      const from = onBridge.count
      assert.deepEqual(await answersOf(NEIGHBOUR), ['no answer'])
      assert.equal(onBridge.count, from)
    })
  })
}
