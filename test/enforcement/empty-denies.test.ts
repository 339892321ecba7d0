// Deny rules with a peer that selects nothing, seen through the daemon: status, metrics and log report them while it lasts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { statusView } from '../../src/admin/views/status.ts'
import { endpointsText } from '../support/nodes/daemon-files.ts'
import { withLab, type DaemonLab } from '../support/labs/daemon-lab.ts'

/** A change of files settles, and the next second begins. */
const SEEN_MS = 2200

const denying = (...rules: readonly string[]): string =>
  `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: p }
spec:
  endpointSelector: {}
  enableDefaultDeny: { egress: false }
  egressDeny:
${rules.map((rule) => `    - ${rule}\n`).join('')}`

const BY_LABEL = '{ toEndpoints: [ { matchLabels: { app: web } }, { matchLabels: { app: db } } ] }'
/** An address that the node does not have, because addresses of the node belong to the host. */
const WEB = { web: '198.18.0.1' }

interface Told {
  readonly warnings: readonly string[]
  readonly gauge: number
  /** The number of log lines about such rules. */
  readonly logged: number
}

async function told(lab: DaemonLab): Promise<Told> {
  await lab.pass(SEEN_MS)
  const all = statusView(lab.admin).warnings.filter((each) => each.includes('deny rule'))
  const folder = lab.path('/')
  const warnings = all.map((each) => each.replace(folder, ''))
  const text = await lab.admin.metrics()
  const gauge = Number(/^namegate_empty_deny_peers (\d+)$/m.exec(text)?.[1] ?? NaN)
  const logged = lab.logged.filter((line) => line.includes('peers of deny rules')).length
  return { warnings, gauge, logged }
}

test('Daemon reports a peer of a deny rule that selects nothing until something is selected', async () => {
  const files = {
    'policy.yaml': denying(BY_LABEL),
    'endpoints.yaml': endpointsText(WEB),
  }
  await withLab({ files }, async (lab) => {
    const warnings = [
      'policy default/p: deny rule at policy.yaml:8 has a peer that selects nothing: app=db,k8s:io.kubernetes.pod.namespace=default',
    ]
    assert.deepEqual(await told(lab), { warnings, gauge: 1, logged: 1 })
    assert.deepEqual(await told(lab), { warnings, gauge: 1, logged: 1 }, 'logged once')
    lab.write('endpoints.yaml', endpointsText({ ...WEB, db: '198.18.0.2' }))
    assert.deepEqual(
      await told(lab),
      { warnings: [], gauge: 0, logged: 2 },
      'an endpoint was added',
    )
    lab.write('endpoints.yaml', endpointsText(WEB))
    assert.deepEqual(await told(lab), { warnings, gauge: 1, logged: 3 }, 'the endpoint was removed')
    lab.write('policy.yaml', denying(BY_LABEL.replace('app: db', 'app: web')))
    assert.deepEqual(await told(lab), { warnings: [], gauge: 0, logged: 4 }, 'another policy')
  })
})

test('Daemon reports every kind of peer of deny rules that selects nothing, and no allow rule', async () => {
  const rows: readonly (readonly [rule: string, selects: string | undefined, reason: string])[] = [
    ['{ toEntities: [ none ] }', 'none', 'an empty entity'],
    ['{ toEndpoints: [] }', 'no peer', 'an empty list of selectors'],
    ['{ toCIDR: [ 198.18.0.1/32 ] }', '198.18.0.1/32', 'an endpoint has the address'],
    [
      '{ toCIDR: [ 192.0.2.0/24 ] }',
      undefined,
      'addresses outside, whether anyone has them or not',
    ],
    ['{ toEntities: [ world ] }', undefined, 'a whole class'],
    ['{ toPorts: [ { ports: [ { port: "25" } ] } ] }', undefined, 'any peer'],
  ]
  const files = {
    'policy.yaml': denying(...rows.map(([rule]) => rule)),
    'allows.yaml': denying(BY_LABEL).replace('egressDeny', 'egress').replace('name: p', 'name: q'),
    'endpoints.yaml': endpointsText(WEB),
  }
  await withLab({ files, policies: ['policy.yaml', 'allows.yaml'] }, async (lab) => {
    const { warnings, gauge } = await told(lab)
    const wanted = rows.flatMap(([, selects], i) =>
      selects === undefined
        ? []
        : [
            `policy default/p: deny rule at policy.yaml:${8 + i} has a peer that selects nothing: ${selects}`,
          ],
    )
    assert.deepEqual([warnings, gauge], [wanted, wanted.length])
  })
})
