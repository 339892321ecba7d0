import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LabelSets } from '../../src/core/labels.ts'
import {
  Facts,
  OWNER_ENDPOINT,
  OWNER_NAME,
  OWNER_PEER,
  OWNER_RESOURCE,
} from '../../src/ipcache/facts.ts'
import { mergeFacts } from '../../src/ipcache/derive.ts'

interface Row {
  readonly reason: string
  readonly owners: readonly (readonly [kind: number, text: string, labels: readonly string[]])[]
  readonly labels: readonly string[]
  readonly conflicts: number
}

test('mergeFacts gives the labels of all owners, and for an equal key the label of the first owner', () => {
  const rows: readonly Row[] = [
    {
      reason: 'one owner alone has its own set',
      owners: [[OWNER_RESOURCE, 'a', ['k8s:app=x', 'k8s:tier=y']]],
      labels: ['k8s:app=x', 'k8s:tier=y'],
      conflicts: 0,
    },
    {
      reason: 'one owner that says a key twice contradicts itself',
      owners: [[OWNER_RESOURCE, 'a', ['k8s:app=x', 'k8s:app=y']]],
      labels: ['k8s:app=x'],
      conflicts: 1,
    },
    {
      reason: 'of two resources the smaller name wins',
      owners: [
        [OWNER_RESOURCE, 'b', ['k8s:app=x']],
        [OWNER_RESOURCE, 'a', ['k8s:app=y', 'k8s:tier=z']],
      ],
      labels: ['k8s:app=y', 'k8s:tier=z'],
      conflicts: 1,
    },
    {
      reason: 'a name adds its label to those of a resource',
      owners: [
        [OWNER_NAME, 'n', ['fqdn:a.test']],
        [OWNER_RESOURCE, 'a', ['k8s:app=x']],
      ],
      labels: ['fqdn:a.test', 'k8s:app=x'],
      conflicts: 0,
    },
    {
      reason: 'a peer has labels like a resource',
      owners: [
        [OWNER_PEER, 'a', ['k8s:app=x', 'k8s:tier=y']],
        [OWNER_RESOURCE, 'b', ['k8s:app=z']],
      ],
      labels: ['k8s:app=z', 'k8s:tier=y'],
      conflicts: 1,
    },
    {
      reason:
        'an endpoint of this node has its address alone, also when a pod of another node claims it',
      owners: [
        [OWNER_PEER, 'a', ['k8s:app=x', 'k8s:tier=y']],
        [OWNER_ENDPOINT, 'b', ['k8s:app=z']],
        [OWNER_NAME, 'n', ['fqdn:a.test']],
      ],
      labels: ['fqdn:a.test', 'k8s:app=z'],
      conflicts: 0,
    },
    {
      reason: 'names never contradict each other',
      owners: [
        [OWNER_NAME, 'n', ['fqdn:a.test']],
        [OWNER_NAME, 'm', ['fqdn:b.test']],
      ],
      labels: ['fqdn:a.test', 'fqdn:b.test'],
      conflicts: 0,
    },
    { reason: 'no owner, no labels', owners: [], labels: [], conflicts: 0 },
  ]
  for (const { reason, owners, labels, conflicts } of rows) {
    const sets = new LabelSets()
    const firstOfPrefix = new Int32Array(2)
    const facts = new Facts({ capacity: 8, firstOfPrefix })
    const texts: string[] = []
    for (const [kind, text, own] of owners) {
      facts.add(1, kind, texts.push(text) - 1, sets.intern(own))
    }
    const merged = mergeFacts(facts, firstOfPrefix[1] ?? 0, sets, (_, owner) => texts[owner] ?? '')
    assert.deepEqual([sets.format(merged.set), merged.conflicts], [labels, conflicts], reason)
  }
})
