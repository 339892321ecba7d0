// Which endpoint is the same after a restart, and which is a new one at the same place.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointDocument, SavedEndpoints } from '../../src/restore/saved-endpoints.ts'
import { endpointId, generation } from '../../src/core/ids.ts'
import { mkEndpoint } from '../support/nodes/node.ts'

const PLAIN = { ...mkEndpoint('plain', ['10.0.0.1', 'fd00::1']), hook: { kind: 'none' } } as const
const VETH = {
  ...mkEndpoint('veth', ['10.0.0.2']),
  hook: { kind: 'interface', name: 'lxc1', side: 'ingress' },
} as const

function saved(isThisBoot: boolean): SavedEndpoints {
  const documents = [
    endpointDocument({ ...PLAIN, id: endpointId(3), generation: generation(3) }, undefined),
    endpointDocument({ ...VETH, id: endpointId(5), generation: generation(5) }, 'interface:7'),
  ]
  const texts = documents.map(({ key, text = '' }) => [key, text] as const)
  return new SavedEndpoints({ endpoints: new Map(texts), isThisBoot })
}

const ROWS: readonly (readonly [
  reason: string,
  isThisBoot: boolean,
  place: Parameters<SavedEndpoints['take']>[0],
  hookKey: string | undefined,
  id: number | undefined,
])[] = [
  ['an address alone is the place', true, PLAIN, undefined, 3],
  ['also across a reboot', false, PLAIN, undefined, 3],
  ['another name is the same workload', true, { ...PLAIN, ...{ name: 'other' } }, undefined, 3],
  [
    'addresses in another order',
    true,
    { ...PLAIN, addresses: [...PLAIN.addresses].reverse() },
    undefined,
    3,
  ],
  [
    'one address fewer',
    true,
    { ...PLAIN, addresses: PLAIN.addresses.slice(1) },
    undefined,
    undefined,
  ],
  ['the same veth', true, VETH, 'interface:7', 5],
  ['a veth of that name that was made again', true, VETH, 'interface:8', undefined],
  ['a veth that does not exist yet', true, VETH, undefined, undefined],
  ['the same number after a reboot is another veth', false, VETH, 'interface:7', undefined],
]

for (const [reason, isThisBoot, place, hookKey, id] of ROWS) {
  test(`SavedEndpoints.take: ${reason}`, () => {
    const endpoints = saved(isThisBoot)
    const taken = endpoints.take(place, hookKey)
    assert.equal(taken?.id, id)
    assert.equal(endpoints.take(place, hookKey), undefined, 'given once')
    for (const known of [3, 5]) assert.equal(endpoints.isSame(endpointId(known)), known === id)
    assert.equal(endpoints.highest, 5)
  })
}

test('SavedEndpoints.adopt finds its endpoints by number and place, and no others', () => {
  const own = saved(true)
  own.adopt(endpointId(5), VETH, 'interface:7')
  assert.equal(own.isSame(endpointId(5)), true)
  const other = saved(true)
  other.adopt(endpointId(3), VETH, 'interface:7')
  assert.equal(other.isSame(endpointId(3)), false, 'the kernel gave its number to another endpoint')
  const rebooted = saved(false)
  rebooted.adopt(endpointId(5), VETH, 'interface:7')
  assert.equal(rebooted.isSame(endpointId(5)), false)
})

test('SavedEndpoints skips records that it cannot read', () => {
  for (const text of ['', '7', 'null', '{}', '{"place":1,"hookKey":""}', '{"place":"x"']) {
    const endpoints = new SavedEndpoints({ endpoints: new Map([['9', text]]), isThisBoot: true })
    assert.equal(endpoints.highest, 0, text)
  }
  const endpoints = new SavedEndpoints({
    endpoints: new Map([['nine', '{"place":"none 10.0.0.1/32","hookKey":""}']]),
    isThisBoot: true,
  })
  assert.equal(endpoints.highest, 0)
})

test('SavedEndpoints.all returns every place as written', () => {
  const hooks = [
    { kind: 'none' },
    { kind: 'interface', name: 'lxc1', side: 'ingress' },
    { kind: 'interface', name: 'eth0', side: 'egress' },
    { kind: 'cgroup', path: 'a slice/with 10.0.0.9/32 in it' },
  ] as const
  const numbered = { id: endpointId(1), generation: generation(1) }
  const written = hooks.map((hook) => {
    return { ...mkEndpoint('e', ['10.0.0.2', 'fd00::2']), ...numbered, hook }
  })
  const documents = written.map((each, i) => endpointDocument(each, `key:${i}`))
  const texts = documents.map(({ text = '' }, i) => [String(i + 1), text] as const)
  const { all } = new SavedEndpoints({ endpoints: new Map(texts), isThisBoot: false })
  const expected = written.map(({ name, hook, addresses }) => ({ name, hook, addresses }))
  assert.deepEqual([...all], expected)
})
