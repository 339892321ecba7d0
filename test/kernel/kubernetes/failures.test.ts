// What a node does when the cluster fails it: a CRD is deleted, the API server comes back with less, a right is revoked. What is in force
// stays in force, and status says what is wrong. NAMEGATE_RIGHTS=each revokes each right by itself, also those to pods of other nodes and to
// write Events. This takes 150 s longer.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { canUseControlPlane, ControlPlane } from '../../support/labs/control-plane.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'

const WEB = '198.18.0.1'
const OTHER = '198.18.0.2'
const NODE = 'node-a'
const POLICIES = '/apis/cilium.io/v2/namespaces/shop/ciliumnetworkpolicies'
const NETWORK_POLICIES = '/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies'
const CRD =
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ciliumnetworkpolicies.cilium.io'
const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const ROLE = `${RBAC}/clusterroles`
const CLUSTERWIDE = '/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies/faulty'
const LIMIT_MS = 90_000
const IS_EACH = process.env['NAMEGATE_RIGHTS'] === 'each'
/** More keys of the configuration. */
const MORE_KEYS = IS_EACH ? ', peers: watch, events: { enabled: true, lease: 10s }' : ''
const EVENT_RIGHTS = 'deploy/kubernetes/components/events/rights.yaml'
/** The rights of the component `events`: where they are, what of them is revoked, and which verb the next request needs. */
const EVENT_RULES = [
  {
    resource: 'leases',
    role: `${RBAC}/namespaces/namegate/roles/namegate-events`,
    rule: /^a right is missing: add verb (get|patch) for resource leases .* in namespace namegate$/,
  },
  {
    resource: 'events',
    role: `${ROLE}/namegate-events`,
    rule: /^a right is missing: add verb (create|patch) for resource events .* in a ClusterRole$/,
  },
]

const RULES = [
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'watch'] },
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['list', 'watch'] },
  {
    apiGroups: ['cilium.io'],
    resources: ['ciliumnetworkpolicies', 'ciliumclusterwidenetworkpolicies'],
    verbs: ['list', 'watch'],
  },
]

interface Collection {
  readonly kind: string
  readonly state: string
  readonly reason: string
  readonly held: number
}

void describe(
  'a cluster that fails its node',
  { skip: canUseNamegate() ?? canUseControlPlane() },
  () => {
    let lab: PodLab
    let cluster: ControlPlane
    let namegate: Namegate

    before(async () => {
      lab = podLab()
      await lab.startNameServer({ names: {} })
      await lab.startWebServer([80])
      cluster = new ControlPlane(lab.node)
      await cluster.start()
      await cluster.request('POST', ROLE, { metadata: { name: 'namegate' }, rules: RULES })
      await cluster.request('POST', `${RBAC}/clusterrolebindings`, {
        metadata: { name: 'namegate' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'namegate' },
        subjects: [{ kind: 'ServiceAccount', name: 'namegate', namespace: 'namegate' }],
      })
      await cluster.request('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
      for (const name of ['a', 'b', 'c']) await cluster.request('POST', POLICIES, policy(name))
      // This policy stays when the others are gone.
      await cluster.request('POST', NETWORK_POLICIES, {
        metadata: { name: 'base' },
        spec: {
          podSelector: {},
          policyTypes: ['Egress'],
          egress: [{ to: [{ ipBlock: { cidr: `${WEB}/32` } }] }],
        },
      })
      if (IS_EACH) await prepareEvents()
      const { address4, address6, interface: link } = lab.pods[0]!
      const addresses = [address4, address6]
      await cluster.addPod({
        namespace: 'shop',
        name: 'web',
        node: NODE,
        addresses,
        labels: { app: 'web' },
      })
      namegate = new Namegate(lab, {
        policies: {},
        endpoints: [],
        config: `kubernetes: { kubeconfig: '${cluster.nodeKubeconfig()}', node: ${NODE}, spread: 1s ${MORE_KEYS} }`,
      })
      await namegate.start({ attached: [link] })
    })
    after(async () => {
      await namegate?.close()
      await cluster?.close()
      await lab.close()
    })

    async function prepareEvents(): Promise<void> {
      await cluster.request('POST', '/api/v1/namespaces', { metadata: { name: 'namegate' } })
      await cluster.apply(readFileSync(EVENT_RIGHTS, 'utf8'))
      await cluster.request('POST', dirname(CLUSTERWIDE), {
        apiVersion: 'cilium.io/v2',
        kind: 'CiliumClusterwideNetworkPolicy',
        metadata: { name: 'faulty' },
        spec: faultySpec(0),
      })
    }

    function policy(name: string) {
      return {
        apiVersion: 'cilium.io/v2',
        kind: 'CiliumNetworkPolicy',
        metadata: { name },
        spec: {
          endpointSelector: { matchLabels: { app: 'web' } },
          egress: [{ toCIDR: [`${WEB}/32`] }],
        },
      }
    }

    async function assertEnforced(): Promise<void> {
      const get = async (address: string): Promise<string> => {
        const args = [
          '-s',
          '-m',
          '2',
          '-o',
          '/dev/null',
          '-w',
          '%{http_code}',
          `http://${address}/`,
        ]
        return (await lab.pods[0]!.host.run('curl', args)).stdout
      }
      assert.deepEqual([await get(WEB), await get(OTHER)], ['200', '000'])
    }

    /** Waits until the Events have the state. */
    async function untilEvents(state: string): Promise<string> {
      const deadline = performance.now() + LIMIT_MS
      for (;;) {
        const { kubernetes } = await namegate.status()
        const { events } = kubernetes as { events: { state: string; reason: string } }
        if (events.state === state) return events.reason
        assert.ok(
          performance.now() < deadline,
          `expected ${state}, found ${JSON.stringify(events)}`,
        )
        await sleep(100)
      }
    }

    async function collections(): Promise<readonly Collection[]> {
      const { kubernetes } = await namegate.status()
      return (kubernetes as { collections: readonly Collection[] }).collections
    }

    /** Waits until a collection has the state. */
    async function until(kind: string, state: string): Promise<Collection> {
      const deadline = performance.now() + LIMIT_MS
      for (;;) {
        const found = (await collections()).find((each) => each.kind === kind)
        if (found?.state === state) return found
        assert.ok(
          performance.now() < deadline,
          `${kind}: expected ${state}, found ${JSON.stringify(found)}`,
        )
        await sleep(100)
      }
    }

    it('holds the policies of a deleted CRD until an operator accepts', async () => {
      await assertEnforced()
      await cluster.request('DELETE', CRD)
      const { held } = await until('CiliumNetworkPolicy', 'held')
      assert.ok(held >= 2)
      await sleep(12_000)
      await assertEnforced()
      const { stdout: status } = await namegate.run('status')
      assert.match(status, /lost 3 objects of CiliumNetworkPolicy at once/)
      const { stdout } = await namegate.run('kubernetes', 'accept')
      assert.equal(stdout, '3 policies removed\n')
      await until('CiliumNetworkPolicy', 'absent')
      await assertEnforced()
    })

    for (const revoked of revocations()) {
      const resources = revoked.flatMap((rule) => rule.resources)
      it(`reports that the right to ${resources.join(', ')} was revoked, and goes on`, async () => {
        const rules = RULES.filter((rule) => !revoked.includes(rule))
        await cluster.retry('PATCH', `${ROLE}/namegate`, { rules })
        // An open watch continues after a right is revoked, so the server has to end it.
        await cluster.kill('apiserver')
        await cluster.again('apiserver')
        const kinds = resources.flatMap((each) => KINDS[each] ?? [])
        for (const kind of kinds.filter((each) => each !== 'CiliumNetworkPolicy')) {
          const { reason } = await until(kind, 'forbidden')
          assert.match(reason, /a right is missing: add verb (list|watch) for resource/)
        }
        await until('Pod', resources.includes('pods') ? 'forbidden' : 'watching')
        await assertEnforced()
        await cluster.retry('PATCH', `${ROLE}/namegate`, { rules: RULES })
        for (const kind of IS_EACH ? kinds.filter((each) => each !== 'CiliumNetworkPolicy') : []) {
          await until(kind, 'watching')
        }
      })
    }

    for (const [i, { resource, role, rule }] of (IS_EACH ? EVENT_RULES : []).entries()) {
      it(`reports that the right to ${resource} was revoked, and goes on`, async () => {
        await untilEvents('writing')
        const { rules } = (await cluster.retry('GET', role)) as { rules: unknown }
        await cluster.retry('PATCH', role, { rules: [] })
        // A changed fault makes an Event due.
        await cluster.retry('PATCH', CLUSTERWIDE, { spec: faultySpec(i + 1) })
        assert.match(await untilEvents('forbidden'), rule)
        const { stdout } = await namegate.run('status')
        assert.match(stdout, /Events about policies: a right is missing: add verb/)
        for (const { kind, state } of await collections()) {
          assert.match(state, /^(watching|absent)$/, kind)
        }
        await assertEnforced()
        await cluster.retry('PATCH', role, { rules })
        await untilEvents('writing')
      })
    }
  },
)

/** Which rules are revoked together: all but the right to pods, or each by itself. */
function revocations(): readonly (typeof RULES)[] {
  return IS_EACH ? RULES.map((rule) => [rule]) : [RULES.slice(1)]
}

/** A policy with a fault in the rule at this place: names and prefixes can not stand in one rule. */
function faultySpec(place: number) {
  const good = { toCIDR: [`${WEB}/32`] }
  const faulty = { ...good, toFQDNs: [{ matchName: 'www.example.com' }] }
  return { endpointSelector: {}, egress: [...Array.from({ length: place }, () => good), faulty] }
}

const KINDS: Readonly<Record<string, readonly string[]>> = {
  pods: IS_EACH ? ['Pod', 'Peer'] : ['Pod'],
  namespaces: ['Namespace'],
  networkpolicies: ['NetworkPolicy'],
  ciliumnetworkpolicies: ['CiliumNetworkPolicy'],
  ciliumclusterwidenetworkpolicies: ['CiliumClusterwideNetworkPolicy'],
}
