// namegate-cni with the daemon and a real control plane. ADD returns when the pod's policies are in force, before the API server knows the
// pod's address. So policy decides about the pod's first packets.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { canRunPlugin, refusalOf, runPlugin } from '../../support/cni/plugin.ts'
import { canUseControlPlane, ControlPlane } from '../../support/labs/control-plane.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import type { Output } from '../../support/labs/lab-process.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const skip = canUseNamegate() ?? canUseControlPlane() ?? canRunPlugin() ?? false
const ALLOWED = '198.18.0.1'
const DENIED = '198.18.0.2'
const NODE = 'node-a'
const PODS = '/api/v1/namespaces/shop/pods'

void describe('pod that namegate-cni places', { skip }, () => {
  let lab: PodLab
  let cluster: ControlPlane
  let namegate: Namegate

  before(async () => {
    lab = podLab()
    await lab.startNameServer({ names: {} })
    await lab.startWebServer([80])
    cluster = new ControlPlane(lab.node)
    await cluster.start()
    await cluster.request('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    await cluster.request('POST', '/apis/cilium.io/v2/namespaces/shop/ciliumnetworkpolicies', {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumNetworkPolicy',
      metadata: { name: 'web' },
      spec: {
        endpointSelector: { matchLabels: { app: 'web' } },
        egress: [{ toCIDR: [`${ALLOWED}/32`] }],
      },
    })
    namegate = new Namegate(lab, {
      policies: {},
      endpoints: [],
      config: [
        'default-egress: deny',
        `kubernetes: { kubeconfig: '${cluster.kubeconfig}', node: ${NODE}, spread: 1s }`,
      ].join('\n'),
    })
    await namegate.start({ attached: [] })
  })
  after(async () => {
    await namegate?.close()
    await cluster?.close()
    await lab.close()
  })

  async function call(command: string, uid: string): Promise<Output> {
    const { host, address4, address6 } = lab.pods[0]!
    const network = {
      cniVersion: '1.1.0',
      socket: join(namegate.folder, 'admin.sock'),
      prevResult: { ips: [{ address: `${address4}/24` }, { address: `${address6}/64` }] },
    }
    const env = {
      CNI_NETNS: `/run/netns/${host.namespace}`,
      CNI_IFNAME: 'eth0',
      CNI_ARGS: `K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web;K8S_POD_UID=${uid}`,
    }
    return await runPlugin({ command, network, env }, lab.node)
  }

  async function get(address: string): Promise<string> {
    const args = ['-s', '-m', '1', '-o', '/dev/null', '-w', '%{http_code}', `http://${address}/`]
    return (await lab.pods[0]!.host.run('curl', args)).stdout
  }

  it('is under policy when ADD returns', async () => {
    const pod = (await cluster.request('POST', PODS, {
      metadata: { name: 'web', labels: { app: 'web' } },
      spec: { nodeName: NODE, containers: [{ name: 'a', image: 'a' }] },
    })) as { metadata: { uid: string } }
    const { uid } = pod.metadata
    const { code, stdout, stderr } = await call('ADD', uid)
    assert.equal(code, 0, `${stdout}${stderr}`)
    assert.deepEqual([await get(DENIED), await get(ALLOWED)], ['000', '200'])
    assert.deepEqual(await call('CHECK', uid), { code: 0, stdout: '', stderr: '' })
    assert.deepEqual(await call('DEL', uid), { code: 0, stdout: '', stderr: '' })
    assert.deepEqual(await call('DEL', uid), { code: 0, stdout: '', stderr: '' })
  })

  it('is refused when the cluster has no such pod, or no daemon runs', async () => {
    const unknown = await call('ADD', 'b1b2c3d4-0000-4000-8000-000000000002')
    assert.equal(refusalOf(unknown).code, 11, unknown.stdout)
    await namegate.stop()
    assert.match(refusalOf(await call('ADD', 'x')).details, /No such file|refused/)
  })
})
