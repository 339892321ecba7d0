// The first bridge of a host appears after the rules. br_netfilter then starts, and it skips rules that are older: the daemon adds its
// rules again. Also an orderly stop that opens DNS again.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { until } from '../../support/peers/client.ts'
import { outputIn } from '../../support/labs/intercept-lab.ts'
import { BRIDGE } from '../../support/labs/lab-bridge.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'

const NAME = 'www.shop.test'
const DATA = '198.18.40.1'

const skip = canUseNamegate() ?? false

describe('tproxy on a host whose first bridge is made after the rules', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate

  before(async () => {
    lab = podLab()
    namegate = new Namegate(lab, {
      policies: {},
      endpoints: [
        `{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: {}, interface: lxc1 }`,
      ],
      listenerItems: ['{ port: 10053, mode: tproxy }'],
      datapath: '{ kind: memory }',
      config: 'intercept: { on-start: true, on-exit: open }',
    })
    await lab.startNameServer({ names: { [NAME]: [DATA] } })
    await namegate.start({ attached: [] })
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  it('intercepts the queries of a pod that moves behind the bridge', async () => {
    const { node, pods } = lab
    const { host, gateway4, gateway6 } = pods[0]!
    const ask = async (server: string) =>
      (await host.run('dig', ['+short', '+tries=1', '+time=2', `@${server}`, NAME])).stdout.trim()
    assert.deepEqual([await ask('10.96.0.10'), await ask('fd00:96::10')], [DATA, DATA])
    node.ip('address', 'flush', 'dev', 'lxc1')
    node.ip('link', 'add', BRIDGE, 'type', 'bridge', 'forward_delay', '0')
    node.ip('link', 'set', 'lxc1', 'master', BRIDGE)
    node.ip('address', 'add', `${gateway4}/24`, 'dev', BRIDGE)
    node.ip('address', 'add', `${gateway6}/64`, 'dev', BRIDGE, 'nodad')
    node.ip('link', 'set', BRIDGE, 'up')
    // The daemon notices the bridge and adds its rules again. Until then there is no answer.
    await until('an answer', async () => (await ask('10.96.0.10')) === DATA, 40_000)
    assert.deepEqual([await ask('10.96.0.10'), await ask('fd00:96::10')], [DATA, DATA])
  })

  it('opens DNS again at an orderly stop, as on-exit sets', async () => {
    await namegate.stop()
    assert.doesNotMatch(outputIn(lab.node, 'nft', 'list', 'ruleset'), /namegate/)
    assert.doesNotMatch(outputIn(lab.node, 'ip', 'rule'), /fwmark/)
  })
})
