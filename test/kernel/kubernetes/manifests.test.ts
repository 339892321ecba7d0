// deploy/kubernetes on a real control plane and the real kernel: the API server accepts every field of every overlay, the daemon needs each
// right that it has, its container works with what the manifest gives it, and the overlay `remove` leaves nothing behind.

import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import {
  DNS_SERVICE,
  NODE_LOCAL_DNS,
  startClusterDns,
  startNodeLocalDns,
} from '../../support/labs/cluster-dns.ts'
import { canUseContainers } from '../../support/labs/container-command.ts'
import { canUseControlPlane, ControlPlane } from '../../support/labs/control-plane.ts'
import { DEFINITIONS } from '../../support/labs/definitions.ts'
import { settings, snapshot } from '../../support/labs/intercept-lab.ts'
import { canUseNamegate } from '../../support/labs/lab-namegate.ts'
import { DNS_4, podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import type { LabProcess } from '../../support/labs/lab-process.ts'
import {
  canBuildManifests,
  objectOf,
  overlay,
  overlayText,
  withoutNewFields,
} from '../../support/labs/manifests.ts'
import { NodePod } from '../../support/labs/node-pod.ts'
import { http } from '../../support/nodes/admin.ts'

const ALLOWED = '198.18.0.1'
const OTHER = '198.18.0.2'
const NODE = 'node-a'
const ROLE = '/apis/rbac.authorization.k8s.io/v1/clusterroles/namegate'
const LIMIT_MS = 90_000

const OVERLAYS = [
  ['audit-first', 'pod-monitor'],
  ['nodelocaldns', 'pod-monitor'],
  ['remove', 'cni-remove'],
  ['sidecar', undefined],
  ['tproxy-ebpf', 'cni'],
  ['tproxy-ebpf', 'pod-monitor'],
] as const

const role = z.object({
  rules: z.array(
    z.object({
      apiGroups: z.tuple([z.string()]),
      resources: z.tuple([z.string()]),
      verbs: z.array(z.string()),
    }),
  ),
})

const status = z.object({
  kubernetes: z.object({
    collections: z.array(z.object({ kind: z.string(), state: z.string(), reason: z.string() })),
  }),
})

const POLICY = {
  apiVersion: 'cilium.io/v2',
  kind: 'CiliumNetworkPolicy',
  metadata: { name: 'web' },
  spec: {
    endpointSelector: { matchLabels: { app: 'web' } },
    egress: [
      {
        toEndpoints: [
          {
            matchLabels: {
              'k8s:io.kubernetes.pod.namespace': 'kube-system',
              'k8s:k8s-app': 'kube-dns',
            },
          },
        ],
        toPorts: [
          {
            ports: [{ port: '53', protocol: 'ANY' }],
            rules: { dns: [{ matchPattern: '*' }] },
          },
        ],
      },
      { toFQDNs: [{ matchName: 'www.example.com' }] },
    ],
  },
}

const skip =
  canUseNamegate() ?? canUseControlPlane() ?? canUseContainers() ?? canBuildManifests() ?? false

void describe('deploy/kubernetes', { skip }, () => {
  let lab: PodLab
  let cluster: ControlPlane
  let pod: NodePod
  let daemon: LabProcess | undefined
  let untouched: readonly (readonly string[])[]

  before(async () => {
    // The cluster does not know the third pod.
    lab = podLab({ pods: 3 })
    await lab.startNameServer({ names: { 'outside.test': [OTHER] } })
    await lab.startWebServer([80])
    const zones = { names: { 'www.example.com': [ALLOWED], 'other.test': [OTHER] } }
    await startClusterDns(lab.node, lab.pods[1]!, zones)
    await startNodeLocalDns(lab.node, zones)
    cluster = new ControlPlane(lab.node)
    await cluster.start()
    for (const each of DEFINITIONS) {
      const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
      await cluster.request('POST', path, each)
    }
    await cluster.request('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    await addPod(0, 'shop', 'web', { app: 'web' })
    await addPod(1, 'kube-system', 'coredns', { 'k8s-app': 'kube-dns' })
    const policies = '/apis/cilium.io/v2/namespaces/shop/ciliumnetworkpolicies'
    await cluster.request('POST', policies, POLICY)
    untouched = look()
    pod = new NodePod({ host: lab.node, cluster, nodeName: NODE, nameServer: DNS_SERVICE })
  })
  after(async () => {
    await daemon?.stop()
    await cluster?.close()
    await lab?.close()
    pod?.close()
  })

  const look = () => [snapshot(lab.node), settings(lab.node)]

  async function addPod(
    index: number,
    namespace: string,
    name: string,
    labels: Readonly<Record<string, string>>,
  ): Promise<void> {
    const { address4, address6 } = lab.pods[index]!
    await cluster.addPod({ namespace, name, node: NODE, addresses: [address4, address6], labels })
  }

  async function collections(): Promise<z.infer<typeof status>['kubernetes']['collections']> {
    const { text } = await http({ socketPath: pod.socket }, '/v1/status')
    return status.parse(JSON.parse(text)).kubernetes.collections
  }

  /** Waits until all collections are so; returns the reasons. */
  async function untilAll(state: string, reason: RegExp): Promise<readonly string[]> {
    for (const end = performance.now() + LIMIT_MS; ; await sleep(100)) {
      const found = await collections().catch(() => [])
      const isSo = found.every((each) => each.state === state && reason.test(each.reason))
      if (isSo && found.length > 0) return found.map((each) => each.reason)
      const isInTime = daemon?.running === true && performance.now() < end
      assert.ok(isInTime, `${JSON.stringify(found)}\n${daemon?.stdout}${daemon?.stderr}`)
    }
  }

  async function ready(): Promise<string> {
    const args = ['-s', '-m', '1', '-w', ' %{http_code}', 'http://127.0.0.1:9465/readyz']
    return (await lab.node.run('curl', args)).stdout
  }

  async function ask(
    index: number,
    server: string,
    name: string,
    transport = '+notcp',
  ): Promise<string> {
    const args = [transport, '+short', '+tries=1', '+time=3', `@${server}`, name]
    return (await lab.pods[index]!.host.run('dig', args)).stdout.trim()
  }

  async function get(address: string, index = 0): Promise<string> {
    const args = ['-s', '-m', '1', '-o', '/dev/null', '-w', '%{http_code}', `http://${address}/`]
    return (await lab.pods[index]!.host.run('curl', args)).stdout
  }

  const rules = () => objectOf(overlay('tproxy-ebpf'), 'ClusterRole', role).rules

  for (const [name, component] of OVERLAYS) {
    it(`is accepted by the API server: overlay ${name} with ${component ?? 'no component'}`, async () => {
      const applied = await cluster.apply(withoutNewFields(overlayText(name, component)))
      assert.ok(applied.length >= 2, applied.join('\n'))
    })
  }

  it('is refused with an unknown field, or the tests before say nothing', async () => {
    const text = overlayText('tproxy-ebpf', 'pod-monitor')
    for (const field of ['hostNetwork:', 'podMetricsEndpoints:']) {
      assert.ok(text.includes(field))
      // The server publishes the fields of a new kind some seconds later.
      for (let left = 20; ; left--) {
        const said = await cluster.apply(text.replace(field, 'unheardOf:')).catch(String)
        if (/unknown field "unheardOf"/.test(String(said))) break
        assert.ok(left > 0, String(said))
        await sleep(500)
      }
    }
    await cluster.apply(text)
  })

  for (const [verb, other] of [
    ['list', 'watch'],
    ['watch', 'list'],
  ] as const) {
    it(`needs the verb ${verb} of each rule, and names it`, async () => {
      await startWith(rules().map((each) => ({ ...each, verbs: [other] })))
      const reasons = await untilAll('forbidden', new RegExp(`add verb ${verb} `))
      for (const { resources } of rules()) {
        const named = reasons.filter((reason) => reason.includes(` ${resources[0]} `))
        assert.equal(named.length, 1, reasons.join('\n'))
      }
      assert.equal(reasons.length, rules().length)
    })
  }

  it('watches all collections with the rules of the manifest', async () => {
    await startWith(rules())
    await untilAll('watching', /^/)
  })

  /** Starts the daemon, or the next one, with these rules in its role. */
  async function startWith(rights: z.infer<typeof role>['rules']): Promise<void> {
    await daemon?.stop()
    await cluster.request('PATCH', ROLE, { rules: rights })
    daemon = pod.start(overlay('tproxy-ebpf'))
  }

  async function untilReady(): Promise<void> {
    for (let left = 100; !(await ready()).endsWith(' 200'); left--) {
      assert.ok(left > 0, `${await ready()}\n${daemon?.stderr}`)
      await sleep(200)
    }
  }

  it('enforces in the container of the manifest, with its capabilities and mounts', async () => {
    await untilReady()
    assert.equal(await ask(0, DNS_SERVICE, 'www.example.com'), ALLOWED)
    assert.deepEqual([await get(ALLOWED), await get(OTHER)], ['200', '000'])
    assert.equal(await ask(0, DNS_4, 'outside.test'), '', 'policy allows only the DNS service')
  })

  it('closes an interface whose pod is not known', async () => {
    assert.deepEqual(
      [await get(ALLOWED, 2), await ask(2, DNS_SERVICE, 'www.example.com')],
      ['000', ''],
    )
  })

  it('sends the queries of CoreDNS to their server, not back to CoreDNS', async () => {
    assert.equal(await ask(1, DNS_4, 'outside.test'), OTHER)
  })

  it('intercepts beside node-local-dns with the overlay `nodelocaldns`', async () => {
    await daemon?.stop()
    assert.match(await ask(0, NODE_LOCAL_DNS, 'other.test'), /no servers could be reached/)
    daemon = pod.start(overlay('nodelocaldns'))
    await untilReady()
    for (const transport of ['+notcp', '+tcp']) {
      assert.equal(await ask(0, NODE_LOCAL_DNS, 'www.example.com', transport), ALLOWED, transport)
    }
    assert.equal(await ask(0, DNS_SERVICE, 'www.example.com'), ALLOWED)
    assert.deepEqual([await get(ALLOWED), await get(OTHER)], ['200', '000'])
  })

  it('goes on enforcing without the container, and is removed by the overlay `remove`', async () => {
    await daemon?.stop()
    assert.deepEqual([await get(ALLOWED), await get(OTHER)], ['200', '000'])
    for (const { code, stderr } of await pod.initialize(overlay('remove'))) {
      assert.equal(code, 0, stderr)
    }
    assert.deepEqual(look(), untouched)
    assert.deepEqual([await get(OTHER), await ask(0, DNS_4, 'outside.test')], ['200', OTHER])
    // The node was started again in between.
    for (const { code, stderr } of await pod.initialize(overlay('remove'))) {
      assert.equal(code, 0, stderr)
    }
  })

  it('installs and removes the CNI plugin, with the components', async () => {
    const [conf, bin] = [join(pod.folder, 'cni-conf'), join(pod.folder, 'cni-bin')]
    const network = { cniVersion: '1.0.0', name: 'test', plugins: [{ type: 'ptp' }] }
    writeFileSync(join(conf, '10-test.conflist'), JSON.stringify(network))
    const files = () => [readdirSync(conf).toSorted(), readdirSync(bin)]
    for (const { code, stderr } of await pod.initialize(overlay('tproxy-ebpf', 'cni'))) {
      assert.equal(code, 0, stderr)
    }
    assert.deepEqual(files(), [['0-namegate.conflist', '10-test.conflist'], ['namegate-cni']])
    for (const { code, stderr } of await pod.initialize(overlay('remove', 'cni-remove'))) {
      assert.equal(code, 0, stderr)
    }
    assert.deepEqual(files(), [['10-test.conflist'], []])
  })
})
