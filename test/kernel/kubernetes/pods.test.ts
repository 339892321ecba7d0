// Pods and policies of a real control plane in force on real interfaces: what a pod may do follows the cluster, stays when the cluster is
// away, and ends with the pod.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { canUseControlPlane, ControlPlane } from '../../support/labs/control-plane.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const ALLOWED = '198.18.0.1'
const DENIED = '198.18.0.2'
const NODE = 'node-a'
const POLICIES = '/apis/cilium.io/v2/namespaces/shop/ciliumnetworkpolicies'

function policyFor(name: string, app: string) {
  const dns = { ports: [{ port: '53', protocol: 'ANY' }], rules: { dns: [{ matchPattern: '*' }] } }
  return {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNetworkPolicy',
    metadata: { name: app },
    spec: {
      endpointSelector: { matchLabels: { app } },
      ingress: [{ fromEntities: ['cluster'] }],
      egress: [
        { toPorts: [dns], toEntities: ['all'] },
        { toFQDNs: [{ matchName: name }], toPorts: [{ ports: [{ port: '80', protocol: 'TCP' }] }] },
      ],
    },
  }
}

void describe('pods of a cluster', { skip: canUseNamegate() ?? canUseControlPlane() }, () => {
  let lab: PodLab
  let cluster: ControlPlane
  let namegate: Namegate

  before(async () => {
    lab = podLab({ pods: 2 })
    await lab.startNameServer({ names: { 'www.example.com': [ALLOWED], 'other.test': [DENIED] } })
    await lab.startWebServer([80])
    cluster = new ControlPlane(lab.node)
    await cluster.start()
    await cluster.request('POST', '/api/v1/namespaces', {
      metadata: { name: 'shop', labels: { team: 'blue' } },
    })
    await cluster.request('POST', POLICIES, policyFor('www.example.com', 'web'))
    await addPod(0, 'web')
    namegate = new Namegate(lab, {
      policies: {},
      endpoints: [],
      config: [
        'default-egress: deny',
        `kubernetes: { kubeconfig: '${cluster.kubeconfig}', node: ${NODE}, spread: 1s }`,
      ].join('\n'),
    })
    await namegate.start({ attached: [lab.pods[0]!.interface] })
  })
  after(async () => {
    await namegate?.close()
    await cluster?.close()
    await lab.close()
  })

  async function addPod(index: number, name: string): Promise<void> {
    const { address4, address6 } = lab.pods[index]!
    const addresses = [address4, address6]
    await cluster.addPod({ namespace: 'shop', name, node: NODE, addresses, labels: { app: name } })
  }

  /** `200`, or `000` when there is no way. */
  async function get(index: number, name: string): Promise<string> {
    const pod = lab.pods[index]!
    const { stdout } = await pod.host.run('dig', [
      '+short',
      '+tries=1',
      '+time=2',
      `@${pod.gateway4}`,
      name,
    ])
    const address = stdout.trim() || (name === 'other.test' ? DENIED : ALLOWED)
    const args = ['-s', '-m', '1', '-o', '/dev/null', '-w', '%{http_code}', `http://${address}/`]
    return (await pod.host.run('curl', args)).stdout
  }

  /** Waits until the endpoints of the daemon are these. */
  async function untilEndpoints(...names: readonly string[]): Promise<void> {
    for (let i = 0; i < 200; i++) {
      const rows = (await namegate.get('endpoints')) as readonly {
        name: string
        enforcing: boolean
      }[]
      const found = rows.filter(({ enforcing }) => enforcing).map(({ name }) => name)
      if (found.toSorted().join() === names.toSorted().join()) return
      await sleep(50)
    }
    assert.deepEqual(await namegate.get('endpoints'), names)
  }

  it('enforces a pod by the policy of its namespace', async () => {
    await untilEndpoints('shop/web')
    assert.equal(await get(0, 'www.example.com'), '200')
    assert.equal(await get(0, 'other.test'), '000')
    const [row] = (await namegate.get('endpoints')) as readonly {
      origin: string
      labels: readonly string[]
    }[]
    assert.equal(row?.origin, 'kubernetes:Pod/shop/web')
    assert.ok(row.labels.includes('k8s:io.cilium.k8s.namespace.labels.team=blue'))
  })

  it('shows the collections in status', async () => {
    const { kubernetes } = (await namegate.status()) as {
      kubernetes: {
        version: string
        collections: readonly { kind: string; state: string; objects: number }[]
      }
    }
    assert.match(kubernetes.version, /^v\d/)
    assert.deepEqual(
      kubernetes.collections.map(({ kind, state, objects }) => [kind, state, objects]),
      [
        ['Pod', 'watching', 1],
        ['Namespace', 'watching', kubernetes.collections[1]?.objects ?? 0],
        ['NetworkPolicy', 'watching', 0],
        ['CiliumNetworkPolicy', 'watching', 1],
        ['CiliumClusterwideNetworkPolicy', 'watching', 0],
        ['ClusterNetworkPolicy', 'absent', 0],
      ],
    )
  })

  it('follows a new pod and a changed policy', async () => {
    await addPod(1, 'late')
    await untilEndpoints('shop/web', 'shop/late')
    assert.equal(await get(1, 'other.test'), '000')
    await cluster.request('POST', POLICIES, policyFor('other.test', 'late'))
    await sleep(500)
    assert.equal(await get(1, 'other.test'), '200')
    assert.equal(await get(1, 'www.example.com'), '000')
  })

  it('keeps everything in force when the servers crash, and over a restart without them', async () => {
    await cluster.kill('apiserver')
    await cluster.kill('etcd')
    await sleep(1000)
    assert.equal(await get(0, 'www.example.com'), '200')
    assert.equal(await get(0, 'other.test'), '000')
    await namegate.stop()
    await namegate.start()
    await untilEndpoints('shop/web', 'shop/late')
    assert.equal(await get(0, 'www.example.com'), '200')
    assert.equal(await get(0, 'other.test'), '000')
    await cluster.again('etcd')
    await cluster.again('apiserver')
  })

  it('removes a pod that is deleted', async () => {
    for (let i = 0; i < 100; i++) {
      const found = await cluster
        .request('DELETE', '/api/v1/namespaces/shop/pods/late?gracePeriodSeconds=0')
        .catch(() => undefined)
      if (found !== undefined) break
      await sleep(200)
    }
    await untilEndpoints('shop/web')
  })
})
