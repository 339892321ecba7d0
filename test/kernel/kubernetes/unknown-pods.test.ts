// Interfaces that the listener names and no known pod has. They are closed, also without the CNI plugin, so a pod sends nothing before its
// policy is in force. The first start on a node closes no pod that already runs, before the API server has shown which pods there are.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { canUseControlPlane, ControlPlane } from '../../support/labs/control-plane.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const ADDRESS = '198.18.0.1'
const NODE = 'node-a'
const LIMIT_MS = 90_000

void describe('pods that are not known', { skip: canUseNamegate() ?? canUseControlPlane() }, () => {
  let lab: PodLab
  let cluster: ControlPlane
  let namegate: Namegate

  before(async () => {
    lab = podLab({ pods: 2 })
    await lab.startNameServer({ names: {} })
    await lab.startWebServer([80])
    cluster = new ControlPlane(lab.node)
    await cluster.start()
    await addPod(0)
    namegate = new Namegate(lab, {
      policies: {},
      endpoints: [],
      listenerItems: ["{ port: 10053, mode: tproxy, interfaces: ['lxc*'] }"],
      config: [
        'intercept: { on-start: true }',
        `kubernetes: { kubeconfig: '${cluster.kubeconfig}', node: ${NODE}, spread: 1s }`,
      ].join('\n'),
    })
    await cluster.silence('apiserver')
    namegate.launch('bin/namegate')
  })
  after(async () => {
    await namegate?.close()
    await cluster?.close()
    await lab?.close()
  })

  async function addPod(index: number): Promise<void> {
    const { address4, address6 } = lab.pods[index]!
    const addresses = [address4, address6]
    await cluster.addPod({
      namespace: 'default',
      name: `pod${index}`,
      node: NODE,
      addresses,
      labels: {},
    })
  }

  /** `200`, or `000` when the packets are dropped. */
  async function get(index: number): Promise<string> {
    const args = ['-s', '-m', '1', '-o', '/dev/null', '-w', '%{http_code}', `http://${ADDRESS}/`]
    return (await lab.pods[index]!.host.run('curl', args)).stdout
  }

  async function until(index: number, expected: string): Promise<void> {
    const end = performance.now() + LIMIT_MS
    while ((await get(index)) !== expected) {
      assert.ok(
        performance.now() < end,
        `pod${index} never got ${expected}: ${namegate.daemon.stderr}`,
      )
      await sleep(50)
    }
  }

  it('stay open at the first start while the API server does not answer', async () => {
    const end = performance.now() + LIMIT_MS
    for (;;) {
      const status = await namegate.status().catch(() => undefined)
      const reasons = JSON.stringify(status?.['notReady'] ?? '')
      if (reasons.includes('of the cluster are not known yet')) break
      assert.ok(performance.now() < end, `${reasons}\n${namegate.daemon.stderr}`)
      await sleep(50)
    }
    // Two beats of the housekeeping, in which fences could come.
    await sleep(2500)
    assert.deepEqual([await get(0), await get(1)], ['200', '200'])
  })

  it('are closed as soon as the known pods are in force', async () => {
    await cluster.continue('apiserver')
    await until(1, '000')
    assert.equal(await get(0), '200', 'no policy selects the known pod')
  })

  it('open when the API server shows them', async () => {
    await addPod(1)
    await until(1, '200')
  })

  it('are closed again when their pod is deleted, also over a restart without the API server', async () => {
    await cluster.request('DELETE', '/api/v1/namespaces/default/pods/pod1?gracePeriodSeconds=0')
    await until(1, '000')
    await cluster.silence('apiserver')
    await namegate.stop()
    await namegate.start({ attached: [lab.pods[0]!.interface] })
    assert.deepEqual([await get(0), await get(1)], ['200', '000'])
  })
})
