import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointId, generation } from '../../src/core/ids.ts'
import { EndpointRegistry, type Endpoint } from '../../src/endpoints/registry.ts'
import { prefixOf } from '../support/nodes/node.ts'

function mkRegistered(id: number, addresses: readonly string[]): Endpoint {
  return {
    id: endpointId(id),
    generation: generation(id),
    name: `e${id}`,
    addresses: addresses.map(prefixOf),
    labels: [],
    hook: id % 2 === 0 ? { kind: 'cgroup', path: `e${id}.slice` } : { kind: 'none' },
    audit: false,
  }
}

function nameAt(registry: EndpointRegistry, text: string): string | undefined {
  const { family, octets } = prefixOf(text)
  const shifted = Uint8Array.from([9, 9, ...octets])
  return registry.byAddress(family, shifted, 2)?.name
}

test('EndpointRegistry finds an endpoint by number, name and the longest prefix around an address', () => {
  const registry = new EndpointRegistry({ addressesMax: 8 })
  registry.add(mkRegistered(1, ['10.0.0.0/8', 'fd00::1']))
  registry.add(mkRegistered(2, ['10.1.0.0/16']))
  registry.add(mkRegistered(3, ['10.1.2.3']))
  const rows = [
    ['10.9.9.9', 'e1', 'inside /8'],
    ['10.1.9.9', 'e2', 'the longer prefix wins'],
    ['10.1.2.3', 'e3', 'the address itself'],
    ['fd00::1', 'e1', 'IPv6'],
    ['fd00::2', undefined, 'another address'],
    ['11.0.0.1', undefined, 'outside'],
  ] as const
  for (const [address, name, reason] of rows) assert.equal(nameAt(registry, address), name, reason)
  assert.equal(registry.get(endpointId(2))?.name, 'e2')
  assert.equal(registry.byNumber(3)?.name, 'e3')
  assert.equal(registry.byName('e1')?.id, 1)
  assert.deepEqual([registry.size, registry.room, registry.sharedCount], [3, 4, 1])
  assert.deepEqual(
    [...registry].map(({ name }) => name),
    ['e1', 'e2', 'e3'],
  )
})

test('EndpointRegistry removes everything about an endpoint', () => {
  const registry = new EndpointRegistry({ addressesMax: 4 })
  registry.add(mkRegistered(1, ['10.0.0.0/8']))
  registry.add(mkRegistered(2, ['10.1.0.0/16']))
  registry.remove(endpointId(2))
  registry.remove(endpointId(2))
  assert.equal(
    nameAt(registry, '10.1.0.1'),
    'e1',
    'the endpoint of the shorter prefix is found again',
  )
  assert.deepEqual([registry.size, registry.room, registry.sharedCount], [1, 3, 0])
  assert.equal(registry.byName('e2'), undefined)
  registry.remove(endpointId(1))
  assert.equal(nameAt(registry, '10.0.0.1'), undefined)
  registry.add(mkRegistered(5, ['10.0.0.1']))
  assert.equal(nameAt(registry, '10.0.0.1'), 'e5')
})
