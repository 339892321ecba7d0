// The forms of policy in a running daemon, and their keys: allow-lists and NetworkPolicies in a folder, an emptied or broken allow-list,
// fields that are left out, and named ports of endpoints.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policyRows } from '../../src/admin/views/policies.ts'
import { statusView } from '../../src/admin/views/status.ts'
import { endpointsText } from '../support/nodes/daemon-files.ts'
import { withLab, type DaemonLab } from '../support/labs/daemon-lab.ts'

const SETTLED = 200
const TWO = endpointsText({ me: '127.0.0.1', other: '127.0.0.2' })
const REFUSED = 'REFUSED 15'

async function told(lab: DaemonLab, ...names: readonly string[]): Promise<readonly string[]> {
  const verdicts: string[] = []
  for (const name of names) {
    const [asked = '', from] = name.split('@')
    verdicts.push(await lab.verdict(asked, from))
  }
  return verdicts
}

test('Daemon applies allow-lists to the endpoints of policies.allow-list-endpoints, and follows them', async () => {
  const files = { 'endpoints.yaml': TWO, 'p/web.allow': '# web\na.example:443\n*.b.example\n' }
  const policyKeys = 'allow-list-endpoints: { app: me }'
  await withLab({ files, policies: ['p'], policyKeys }, async (lab) => {
    const names = ['a.example', 'x.b.example', 'c.example', 'c.example@127.0.0.2']
    assert.deepEqual(await told(lab, ...names), ['NOERROR', 'NOERROR', REFUSED, 'NOERROR'])
    lab.write('p/web.allow', 'c.example\n')
    await lab.pass(SETTLED)
    assert.deepEqual(await told(lab, ...names), [REFUSED, REFUSED, 'NOERROR', 'NOERROR'])
    lab.write('p/web.allow', 'c..example\n')
    await lab.pass(SETTLED)
    assert.deepEqual(
      await told(lab, 'a.example', 'c.example'),
      [REFUSED, 'NOERROR'],
      'the last good one',
    )
    const [row] = [...policyRows(lab.admin)]
    assert.deepEqual([row?.name, row?.kind, row?.state], ['web', 'AllowList', 'last-good'])
    assert.match(row?.error ?? '', /web\.allow:1:3: found an empty label/)
  })
})

test('Daemon loads the egress half of a NetworkPolicy, and reports the rest', async () => {
  const files = {
    'endpoints.yaml': TWO,
    'p/half.yaml':
      'apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: { name: half }\nspec: { podSelector: {}, ingress: [{}], policyTypes: [Ingress, Egress], egress: [{ to: [], ports: [{ port: 53, protocol: UDP }] }] }\n',
    'p/warned.yaml':
      'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: warned }\nspec: { endpointSelector: {}, egress: [{ toServices: [{}] }] }\n',
  }
  const policyKeys = 'ingress: ignore, unsupported-fields: warn'
  await withLab({ files, policies: ['p'], policyKeys }, async (lab) => {
    assert.deepEqual(await told(lab, 'a.example'), ['NOERROR'])
    const { warnings } = statusView(lab.admin)
    assert.ok(
      warnings.includes('policy default/half is half enforced: its ingress half is ignored'),
    )
    assert.ok(
      lab.logged.some((line) => line.includes('spec.egress[0].toServices: is not supported')),
    )
  })
})

test('Daemon resolves named ports of endpoints in policies, and follows their files', async () => {
  const endpoints = (port: string) =>
    `endpoints:\n  - { name: me, addresses: [127.0.0.1], labels: { app: me } }\n  - { name: db, addresses: [127.0.0.3], labels: { app: db }, ports: { pg: ${port} } }\n`
  const files = {
    'endpoints.yaml': endpoints('5432'),
    'policy.yaml':
      'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: p }\nspec: { endpointSelector: {}, egress: [{ toEndpoints: [{ matchLabels: { app: db } }], toPorts: [{ ports: [{ port: pg, protocol: TCP }] }] }] }\n',
  }
  await withLab({ files }, async (lab) => {
    const ports = (): readonly number[] => {
      const { policies } = lab.admin.policies
      return policies.flatMap(({ rules }) =>
        rules.flatMap(({ toPorts = [] }) =>
          toPorts.flatMap((entry) => entry.ports.map(({ low }) => low)),
        ),
      )
    }
    assert.deepEqual(ports(), [5432])
    lab.write('endpoints.yaml', endpoints('6432/TCP'))
    await lab.pass(SETTLED)
    assert.deepEqual(ports(), [6432])
  })
})
