// Events about policies with faults on a real control plane: `kubectl describe` shows what `get policies` shows, one node writes,
// another node takes over, and each right of the component is necessary.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { EVENT_RIGHTS, LEASES, type EventRight } from '../../support/kubernetes/event-rights.ts'
import { canUseControlPlane, ControlPlane } from '../../support/labs/control-plane.ts'
import { DEFINITIONS } from '../../support/labs/definitions.ts'
import { canUseNamegate, Namegate } from '../../support/labs/lab-namegate.ts'
import { podLab, type PodLab } from '../../support/labs/lab-pod.ts'
import { canBuildManifests, overlayText, withoutNewFields } from '../../support/labs/manifests.ts'

const POLICIES = '/apis/cilium.io/v2/namespaces/shop/ciliumnetworkpolicies'
const CLUSTERWIDE = '/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies'
const TIERS = '/apis/policy.networking.k8s.io/v1alpha2/clusternetworkpolicies'
const LIMIT_MS = 120_000

const GOOD = { endpointSelector: {}, egress: [{ toCIDR: ['192.0.2.0/24'] }] }
const BAD = {
  endpointSelector: {},
  egress: [{ toFQDNs: [{ matchName: 'www.example.com' }], toCIDR: ['192.0.2.0/24'] }],
}
const FAULT = 'spec.egress[0].toCIDR: can not stand beside toFQDNs in one rule; write two rules'

const events = z.object({
  items: z.array(
    z.object({
      reason: z.string(),
      type: z.string(),
      message: z.string(),
      involvedObject: z.object({ name: z.string(), kind: z.string() }),
      source: z.object({ component: z.string(), host: z.string() }),
    }),
  ),
})
const status = z.object({
  warnings: z.array(z.string()),
  kubernetes: z.object({
    events: z.object({ state: z.string(), writer: z.string(), reason: z.string() }),
  }),
})
const roles = z.object({
  rules: z.array(
    z.object({
      apiGroups: z.array(z.string()),
      resources: z.array(z.string()),
      resourceNames: z.array(z.string()).optional(),
      verbs: z.array(z.string()),
    }),
  ),
})

const skip = canUseNamegate() ?? canUseControlPlane() ?? canBuildManifests() ?? false

void describe('Events about policies', { skip }, () => {
  let lab: PodLab
  let cluster: ControlPlane
  const daemons = new Map<string, Namegate>()

  before(async () => {
    lab = podLab()
    await lab.startNameServer({ names: {} })
    cluster = new ControlPlane(lab.node)
    await cluster.start()
    for (const each of DEFINITIONS) {
      await cluster.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', each)
    }
    await cluster.apply(withoutNewFields(overlayText('tproxy-ebpf', 'events')))
    await cluster.request('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    await put(POLICIES, 'web', GOOD)
    await put(POLICIES, 'new', BAD)
    await Promise.all([start('node-a'), start('node-b')])
  })
  after(async () => {
    for (const each of daemons.values()) await each.close()
    await cluster?.close()
    await lab?.close()
  })

  async function put(path: string, name: string, spec: object): Promise<void> {
    const isTier = path === TIERS
    const kind = path === POLICIES ? 'CiliumNetworkPolicy' : 'CiliumClusterwideNetworkPolicy'
    const names = isTier
      ? { apiVersion: 'policy.networking.k8s.io/v1alpha2', kind: 'ClusterNetworkPolicy' }
      : { apiVersion: 'cilium.io/v2', kind }
    await cluster.retry('POST', path, { ...names, metadata: { name }, spec })
  }

  async function start(name: string): Promise<Namegate> {
    const namegate = new Namegate(
      { node: lab.node, pods: [] },
      {
        policies: {},
        endpoints: [],
        listenerItems: ['{ address: 127.0.0.1, port: 0, mode: explicit }'],
        datapath: '{ kind: memory }',
        config: [
          'metrics: { port: 0 }',
          'kubernetes:',
          `  kubeconfig: '${cluster.nodeKubeconfig()}'`,
          `  node: ${name}`,
          `  spread: 1s`,
          `  events: { enabled: true, lease: 10s }`,
        ].join('\n'),
      },
    )
    daemons.set(name, namegate)
    namegate.launch(resolve('bin/namegate'))
    await until(`${name} has begun`, async () => await stateOf(name))
    return namegate
  }

  async function stateOf(name: string): Promise<z.infer<typeof status>['kubernetes']['events']> {
    const namegate = daemons.get(name)
    assert.ok(namegate !== undefined)
    return status.parse(await namegate.status()).kubernetes.events
  }

  async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
    for (const end = performance.now() + LIMIT_MS; ; await sleep(200)) {
      const found = await look().catch(() => undefined)
      if (found !== undefined) return found
      assert.ok(performance.now() < end, `this did not happen: ${what}`)
    }
  }

  async function eventOf(
    policy: string,
    reason: string,
    namespace = 'shop',
    host?: string,
  ): Promise<z.infer<typeof events>['items'][number]> {
    return await until(`an Event ${reason} of ${policy}`, async () => {
      const path = `/api/v1/namespaces/${namespace}/events`
      const { items } = events.parse(await cluster.request('GET', path))
      return items.find(
        (each) =>
          each.involvedObject.name === policy &&
          each.reason === reason &&
          (host === undefined || each.source.host === host),
      )
    })
  }

  async function errorOf(policy: string): Promise<string> {
    const rows = z
      .array(z.object({ file: z.string(), error: z.string().nullable() }))
      .parse(await daemons.get('node-a')?.get('policies'))
    return rows.find(({ file }) => file.endsWith(`/${policy}`))?.error ?? ''
  }

  it('have the text of `get policies`, and say what is in force', async () => {
    const { message, type, source } = await eventOf('new', 'PolicyFault')
    assert.equal(type, 'Warning')
    assert.equal(message, `${FAULT}; nothing of the policy is in force on ${source.host}`)
    assert.equal(await errorOf('new'), `kubernetes:CiliumNetworkPolicy/shop/new: ${FAULT}`)
    await cluster.request('PATCH', `${POLICIES}/web`, { spec: BAD })
    const changed = await eventOf('web', 'PolicyFault')
    assert.equal(
      changed.message,
      `${FAULT}; the last good version stays in force on ${changed.source.host}`,
    )
  })

  for (const program of [undefined, 'kubectl']) {
    it(`are shown by kubectl describe: ${program ?? 'of Debian 12'}`, async () => {
      const args = ['-n', 'shop', 'describe', 'ciliumnetworkpolicy', 'web']
      const { stdout, stderr } = await cluster.kubectl(args, program)
      assert.match(
        stdout,
        /Warning +PolicyFault .* namegate +spec.egress.0..toCIDR: can not/,
        stderr,
      )
    })
  }

  it('about policies without a namespace are in `default`', async () => {
    await put(CLUSTERWIDE, 'wide', BAD)
    await put(TIERS, 'tier', {})
    const { message } = await eventOf('wide', 'PolicyFault', 'default')
    assert.ok(message.startsWith(FAULT), message)
    const tier = await eventOf('tier', 'PolicyFault', 'default')
    assert.match(tier.message, /spec: found no tier, expected Admin or Baseline; /)
    for (const kind of ['ciliumclusterwidenetworkpolicy/wide', 'clusternetworkpolicy/tier']) {
      const { stdout, stderr } = await cluster.kubectl(['describe', kind], 'kubectl')
      assert.match(stdout, /Warning +PolicyFault /, stderr)
    }
    const all = ['get', 'events', '-A', '--field-selector', 'reason=PolicyFault']
    const { stdout } = await cluster.kubectl(all)
    for (const each of ['shop .*/new ', 'shop .*/web ', 'default .*/wide ', 'default .*/tier ']) {
      assert.match(stdout, new RegExp(`^${each}`, 'm'))
    }
  })

  it('say that a policy is mended', async () => {
    await cluster.request('PATCH', `${POLICIES}/web`, { spec: { egress: GOOD.egress } })
    const { type, message } = await eventOf('web', 'PolicyMended')
    assert.deepEqual([type, message], ['Normal', 'the policy has no fault any more'])
    const { stdout } = await cluster.kubectl(['-n', 'shop', 'describe', 'cnp', 'web'], 'kubectl')
    assert.match(stdout, /Normal +PolicyMended /)
  })

  /** The node that writes, and the other. */
  async function writers(): Promise<readonly [writer: string, other: string]> {
    return await until('one node writes', async () => {
      const [a, b] = [await stateOf('node-a'), await stateOf('node-b')]
      if (a.state === 'writing' && b.state === 'standby') return ['node-a', 'node-b'] as const
      return a.state === 'standby' && b.state === 'writing'
        ? (['node-b', 'node-a'] as const)
        : undefined
    })
  }

  it('are written by one node, and by the other when the first is killed', async () => {
    const [writer, other] = await writers()
    assert.equal((await stateOf(other)).writer, writer)
    await eventOf('new', 'PolicyFault', 'shop', writer)
    await daemons.get(writer)?.kill()
    await eventOf('new', 'PolicyFault', 'shop', other)
    assert.equal((await stateOf(other)).state, 'writing')
  })

  it('leave the Lease free when the daemon stops', async () => {
    const held = z.object({ spec: z.object({ holderIdentity: z.string().optional() }) })
    const holder = async () =>
      held.parse(await cluster.request('GET', `${LEASES}/namegate-events`)).spec.holderIdentity
    const writer = await holder()
    await daemons.get(writer ?? '')?.stop()
    assert.ok(writer !== undefined)
    assert.equal(await holder(), undefined)
  })

  /** Waits until the server lets the service account do this, or not. */
  async function untilAllowed(right: EventRight, isAllowed: boolean): Promise<void> {
    const { verb, resource, group, namespace } = right
    const resourceAttributes = { verb, resource, group, namespace, name: 'namegate-events' }
    const spec = { user: 'system:serviceaccount:namegate:namegate', resourceAttributes }
    const answer = z.object({ status: z.object({ allowed: z.boolean() }) })
    await until(`${verb} ${resource} is ${isAllowed ? 'allowed' : 'refused'}`, async () => {
      const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
      const { allowed } = answer.parse(await cluster.request('POST', path, { spec })).status
      return allowed === isAllowed ? true : undefined
    })
  }

  for (const right of EVENT_RIGHTS) {
    const { verb, resource, role, prepare, place } = right
    it(`need the verb ${verb} for ${resource}, and status names it`, async () => {
      const { rules } = roles.parse(await cluster.request('GET', role))
      const fewer = rules
        .map((rule) => ({ ...rule, verbs: rule.verbs.filter((each) => each !== verb) }))
        .filter(({ verbs }) => verbs.length > 0)
      assert.notDeepEqual(fewer, rules)
      for (const path of prepare) await cluster.request('DELETE', path)
      await cluster.request('PATCH', role, { rules: fewer })
      await untilAllowed(right, false)
      const name = `node-${verb}-${resource}`
      const namegate = await start(name)
      await until('forbidden', async () =>
        (await stateOf(name)).state === 'forbidden' ? true : undefined,
      )
      const { reason } = await stateOf(name)
      assert.ok(reason.startsWith(`a right is missing: add verb ${verb} for resource ${resource} `))
      assert.ok(reason.endsWith(place), reason)
      const { warnings } = status.parse(await namegate.status())
      assert.ok(warnings.includes(`Events about policies: ${reason}`), warnings.join('\n'))
      await namegate.stop()
      await cluster.request('PATCH', role, { rules })
      await untilAllowed(right, true)
    })
  }
})
