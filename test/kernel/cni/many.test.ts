// Many pods start at once. The first packets of each ask a name, connect to an allowed address and to a denied one. Each pod gets its first
// answer, and no packet passes that policy denies. NAMEGATE_PODS sets the number of pods.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { canRunPlugin, runPlugin } from '../../support/cni/plugin.ts'
import { canUseControlPlane, ControlPlane } from '../../support/labs/control-plane.ts'
import type { Host } from '../../support/labs/lab.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const COUNT = Number(process.env['NAMEGATE_PODS'] ?? 5)
/** Pods that are made at the same time. */
const AT_ONCE = 5
const ALLOWED = '198.18.0.1'
const DENIED = '198.18.0.2'
const GATEWAY = '169.254.1.1'
const DNS = '10.99.0.1'
const NODE = 'node-a'
const SHOP = '/api/v1/namespaces/shop'
const skip = canUseNamegate() ?? canUseControlPlane() ?? canRunPlugin() ?? false

void describe('many pods that send at once', { skip, timeout: 900_000 }, () => {
  let lab: PodLab
  let cluster: ControlPlane
  let namegate: Namegate

  before(async () => {
    lab = podLab()
    lab.node.ip('addr', 'add', `${DNS}/32`, 'dev', 'lo')
    await lab.startNameServer({ names: { 'www.example.com': [ALLOWED] } })
    await lab.startWebServer([80])
    cluster = new ControlPlane(lab.node)
    await cluster.start()
    await cluster.request('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    const dns = {
      ports: [{ port: '53', protocol: 'ANY' }],
      rules: { dns: [{ matchPattern: '*' }] },
    }
    await cluster.request('POST', '/apis/cilium.io/v2/namespaces/shop/ciliumnetworkpolicies', {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumNetworkPolicy',
      metadata: { name: 'web' },
      spec: {
        endpointSelector: {},
        egress: [
          { toEntities: ['all'], toPorts: [dns] },
          { toFQDNs: [{ matchName: 'www.example.com' }] },
        ],
      },
    })
    namegate = new Namegate(lab, {
      policies: {},
      endpoints: [],
      listeners: [DNS],
      config: `kubernetes: { kubeconfig: '${cluster.kubeconfig}', node: ${NODE}, spread: 1s }`,
    })
    await namegate.start({ attached: [] })
  })
  after(async () => {
    await namegate?.close()
    await cluster?.close()
    await lab.close()
  })

  /** Makes the network namespace and the veth, as the plugin before namegate-cni does. */
  function addPodHost(i: number, address: string): Host {
    const host = lab.lab.addHost(`p${i}`)
    lab.lab.link(
      { host: lab.node, interface: `lxp${i}`, addresses: [`${GATEWAY}/32`] },
      { host, interface: 'eth0', addresses: [`${address}/32`] },
    )
    lab.node.ip('route', 'add', `${address}/32`, 'dev', `lxp${i}`)
    host.ipBatch(`route add ${GATEWAY} dev eth0`, `route add default via ${GATEWAY}`)
    return host
  }

  /** Makes one pod and returns the results of its first packets. `NOERROR 200 000` is expected. */
  async function first(i: number): Promise<string> {
    const address = `10.30.${i >> 7}.${(i & 127) + 2}`
    const host = addPodHost(i, address)
    const pod = (await cluster.request('POST', `${SHOP}/pods`, {
      metadata: { name: `p${i}` },
      spec: { nodeName: NODE, containers: [{ name: 'a', image: 'a' }] },
    })) as { metadata: { uid: string } }
    const network = {
      cniVersion: '1.1.0',
      socket: join(namegate.folder, 'admin.sock'),
      prevResult: { ips: [{ address: `${address}/32` }] },
    }
    const env = {
      CNI_NETNS: `/run/netns/${host.namespace}`,
      CNI_IFNAME: 'eth0',
      CNI_ARGS: `K8S_POD_NAMESPACE=shop;K8S_POD_NAME=p${i};K8S_POD_UID=${pod.metadata.uid}`,
    }
    const added = await runPlugin({ command: 'ADD', network, env }, lab.node)
    assert.equal(added.code, 0, `${added.stdout}${added.stderr}`)
    const get = "curl -s -m 3 -o /dev/null -w '%{http_code}'"
    const script = [
      `dig +tries=1 +time=5 @${DNS} www.example.com | sed -n 's/.*status: \\([A-Z]*\\).*/\\1/p'`,
      `${get} http://${ALLOWED}/; echo; ${get.replace('3', '1')} http://${DENIED}/`,
    ]
    const { stdout } = await host.run('sh', ['-c', script.join('\n')])
    return stdout.trim().split('\n').join(' ')
  }

  it('each get the first answer, and reach only what policy allows', async (t) => {
    const found = new Map<string, number>()
    let next = 0
    const lane = async (): Promise<void> => {
      while (next < COUNT) {
        const result = await first(next++)
        found.set(result, (found.get(result) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
    t.diagnostic(`${COUNT} pods: ${[...found].map((each) => each.join(': ')).join(', ')}`)
    assert.deepEqual([...found], [['NOERROR 200 000', COUNT]])
  })
})
