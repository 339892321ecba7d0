// Pods of other nodes on a real control plane: which of them a pod of this node reaches follows their labels, and who has their addresses.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { canUseControlPlane, ControlPlane } from '../../support/labs/control-plane.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import type { NamegateOptions } from '../../support/labs/lab-namegate-config.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const NODE = 'node-a'
const FAR = 'node-b'
/** Each answers on port 80. */
const [DB, OTHER, SECRET] = ['198.18.1.1', '198.18.1.2', '198.18.1.3'] as const
const POLICIES = '/apis/cilium.io/v2/namespaces/shop/ciliumnetworkpolicies'
const PODS = '/api/v1/namespaces/shop/pods'
const LIMIT_MS = 30_000

const OPENING = {
  apiVersion: 'cilium.io/v2',
  kind: 'CiliumNetworkPolicy',
  metadata: { name: 'opening' },
  spec: {
    endpointSelector: { matchLabels: { app: 'web' } },
    egress: [{ toEndpoints: [{ matchLabels: { app: 'db' } }] }],
  },
}
const CLOSING = {
  apiVersion: 'cilium.io/v2',
  kind: 'CiliumNetworkPolicy',
  metadata: { name: 'closing' },
  spec: {
    endpointSelector: { matchLabels: { app: 'admin' } },
    egress: [{ toEntities: ['all'] }],
    egressDeny: [{ toEndpoints: [{ matchLabels: { app: 'secret' } }] }],
  },
}

void describe('pods of other nodes', { skip: canUseNamegate() ?? canUseControlPlane() }, () => {
  let lab: PodLab
  let cluster: ControlPlane
  let namegate: Namegate

  before(async () => {
    lab = podLab({ pods: 2 })
    await lab.startNameServer({ names: {} })
    await lab.startWebServer([80])
    cluster = new ControlPlane(lab.node)
    await cluster.start()
    await cluster.request('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    for (const policy of [OPENING, CLOSING]) await cluster.request('POST', POLICIES, policy)
    for (const [i, name] of ['web', 'admin'].entries()) {
      const { address4, address6 } = lab.pods[i]!
      await addPod(name, NODE, [address4, address6])
    }
    await addPod('db', FAR, [DB])
    await addPod('other', FAR, [OTHER])
    await addPod('secret', FAR, [SECRET])
    namegate = new Namegate(lab, optionsFor('none'))
    await namegate.start()
  })
  after(async () => {
    await namegate?.close()
    await cluster?.close()
    await lab.close()
  })

  function optionsFor(peers: 'none' | 'watch'): NamegateOptions {
    const keys = `kubeconfig: '${cluster.kubeconfig}', node: ${NODE}, spread: 1s, peers: ${peers}`
    return { policies: {}, endpoints: [], config: `kubernetes: { ${keys} }` }
  }

  async function addPod(name: string, node: string, addresses: readonly string[]): Promise<void> {
    await cluster.addPod({ namespace: 'shop', name, node, addresses, labels: { app: name } })
  }

  async function removePod(name: string): Promise<void> {
    await cluster.request('DELETE', `${PODS}/${name}?gracePeriodSeconds=0`)
  }

  async function reaches(pod: 'web' | 'admin', address: string): Promise<boolean> {
    const { host } = lab.pods[pod === 'web' ? 0 : 1]!
    const args = ['-s', '-m', '1', '-o', '/dev/null', '-w', '%{http_code}', `http://${address}/`]
    return (await host.run('curl', args)).stdout === '200'
  }

  /** Waits until a pod reaches exactly these addresses. */
  async function untilReached(pod: 'web' | 'admin', expected: readonly string[]): Promise<void> {
    const deadline = performance.now() + LIMIT_MS
    for (;;) {
      const found: string[] = []
      for (const address of [DB, OTHER, SECRET]) {
        if (await reaches(pod, address)) found.push(address)
      }
      if (found.join() === expected.join()) return
      if (performance.now() > deadline) assert.deepEqual(found, expected, `what ${pod} reaches`)
      await sleep(100)
    }
  }

  async function warnings(): Promise<string> {
    return (await namegate.run('status')).stdout
  }

  it('are not known with `peers: none`, and status names the policies that select them', async () => {
    await untilReached('web', [])
    await untilReached('admin', [DB, OTHER, SECRET])
    const text = await warnings()
    assert.match(text, /peers is none\): allow rules of shop\/opening do not allow them/)
    assert.match(text, /peers is none\): deny rules of shop\/closing do not deny them/)
  })

  it('are opened and closed by their labels with `peers: watch`', async () => {
    await namegate.stop()
    namegate.writeConfig(optionsFor('watch'))
    await namegate.start()
    await untilReached('web', [DB])
    await untilReached('admin', [DB, OTHER])
    assert.doesNotMatch(await warnings(), /do not (allow|deny) them/)
    const rows = (await namegate.get('ipcache')) as readonly {
      prefix: string
      owners: readonly { kind: string; name: string }[]
    }[]
    const owners = rows.find(({ prefix }) => prefix === `${DB}/32`)?.owners ?? []
    assert.deepEqual(
      owners.map(({ kind, name }) => [kind, name]),
      [['peer', 'shop/db']],
    )
  })

  it('stay known when the server crashes, and over a restart without it', async () => {
    await cluster.kill('apiserver')
    await namegate.stop()
    await namegate.start()
    assert.equal(await reaches('web', DB), true)
    assert.equal(await reaches('web', OTHER), false)
    assert.equal(await reaches('admin', SECRET), false)
    await cluster.again('apiserver')
  })

  it('are refused when a later pod with other labels has taken their address', async () => {
    await cluster.retry('GET', PODS)
    await addPod('thief', FAR, [DB])
    await untilReached('web', [])
    await removePod('db')
    await sleep(500)
    assert.equal(await reaches('web', DB), false)
    await removePod('thief')
    await addPod('db', FAR, [DB])
    await untilReached('web', [DB])
  })

  it('are refused when they are deleted', async () => {
    await removePod('db')
    await untilReached('web', [])
    await removePod('secret')
    await untilReached('admin', [DB, OTHER, SECRET])
  })
})
