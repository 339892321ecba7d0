// namegate-cni closes an interface while no daemon runs. When the daemon attaches the endpoint, its programs replace those of the plugin,
// and the pod can reach what policy allows.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { canRunPlugin, runPlugin } from '../../support/cni/plugin.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const skip = canUseNamegate() ?? canRunPlugin() ?? false
const ALLOWED = '198.18.0.1'
const DENIED = '198.18.0.2'
const POLICY = `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: web }
spec:
  endpointSelector: { matchLabels: { app: web } }
  egress: [{ toCIDR: [${ALLOWED}/32] }]
`

void describe('interface that namegate-cni closed', { skip }, () => {
  let lab: PodLab
  let namegate: Namegate
  before(async () => {
    lab = podLab()
    await lab.startNameServer({ names: {} })
    await lab.startWebServer([80])
    namegate = new Namegate(lab, {
      policies: { 'web.yaml': POLICY },
      config: 'default-egress: deny',
      endpoints: [
        "{ name: pod1, addresses: [10.20.1.2, 'fd20:1::2'], labels: { app: web }, interface: lxc1 }",
      ],
    })
  })
  after(async () => {
    await namegate.close()
    await lab.close()
  })

  async function get(address: string): Promise<string> {
    const args = ['-s', '-m', '1', '-o', '/dev/null', '-w', '%{http_code}', `http://${address}/`]
    return (await lab.pods[0]!.host.run('curl', args)).stdout
  }

  it('opens for what policy allows when the daemon starts', async () => {
    assert.deepEqual([await get(ALLOWED), await get(DENIED)], ['200', '200'])
    const { code, stderr } = await runPlugin(
      {
        command: 'ADD',
        network: {
          cniVersion: '1.1.0',
          socket: '/nowhere.sock',
          'on-failure': 'close',
          prevResult: { ips: [{ address: '10.20.1.2/24' }] },
        },
        env: { CNI_NETNS: `/run/netns/${lab.pods[0]!.host.namespace}`, CNI_IFNAME: 'eth0' },
      },
      lab.node,
    )
    assert.equal(code, 0, stderr)
    assert.deepEqual([await get(ALLOWED), await get(DENIED)], ['000', '000'])
    await namegate.start()
    assert.deepEqual([await get(ALLOWED), await get(DENIED)], ['200', '000'])
  })
})
