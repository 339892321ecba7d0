// Pre-allocation that follows changes of policies, endpoints and prefixes ends in the same state as one that starts with the last state.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'

const NAMES = ['a.x', 'b.x', 'a.b.x', 'c.y', 'x'] as const
const PATTERNS = ['*.x', '**.x', '*', 'a*.x', '*.b.x', '*.y'] as const
const CIDRS = ['0.0.0.0/0', '10.0.0.0/8', '192.0.0.0/9', '::/0', '2000::/3'] as const
const ADDRESSES = ['10.0.0.1', '2001:db8::1'] as const

function randomSpec(random: Random): string {
  const peers = Array.from({ length: 1 + random.below(3) }, () => {
    if (random.oneIn(4)) return `{ toCIDR: [ '${random.pick(CIDRS)}' ] }`
    const isName = random.oneIn(2)
    const [key, text] = isName
      ? ['matchName', random.pick(NAMES)]
      : ['matchPattern', random.pick(PATTERNS)]
    return `{ toFQDNs: [ { ${key}: '${text}' } ] }`
  })
  return `egress: [ ${peers.join(', ')} ]`
}

/** Sorted texts of the label sets with a pre-allocated number. */
function preallocated({ core }: Node): readonly string[] {
  const texts: string[] = []
  for (const { set, preallocated: isAhead } of core.allocator.views()) {
    if (isAhead) texts.push(core.labelSets.format(set).join(' '))
  }
  return texts.sort()
}

test('Preallocation that follows changes equals one that starts with the last state', () => {
  const random = new Random(20_261_121)
  const followed = new Node()
  let most = 0
  for (let round = 0; round < runsOf(120); round++) {
    const specs = Array.from({ length: random.below(5) }, () => randomSpec(random))
    const egress = random.oneIn(5) ? ['k8s:namegate.io/default-egress=allow-named'] : []
    const addresses = ADDRESSES.slice(random.below(2), 1 + random.below(2))
    const endpoints = addresses.length === 0 ? [] : [mkEndpoint('e', addresses, egress)]
    const policies = mkPolicies(...specs)
    const fresh = new Node()
    for (const node of [followed, fresh]) {
      if (random.oneIn(2) || node === fresh) node.setEndpoints(endpoints)
      node.setPolicies(policies)
      node.setEndpoints(endpoints)
    }
    const have = preallocated(followed)
    assert.deepEqual(have, preallocated(fresh), `round ${round}: ${specs.join('; ')}`)
    most = Math.max(most, have.length)
  }
  assert.ok(most > 8, `${most} at most`)
})

test('Preallocation adds sets that found no room when there is room', () => {
  const node = new Node({ staticIdentities: 4 })
  node.setEndpoints([mkEndpoint('e', ['10.0.0.1'])])
  const spec = (name: string): string => `egress: [ { toFQDNs: [ { matchName: ${name} } ] } ]`
  const all = mkPolicies(spec('a.x'), spec('b.x'), spec('c.x'))
  node.setPolicies(all)
  assert.equal(preallocated(node).length, 2, 'half of the bound')
  node.setPolicies(all.slice(1))
  assert.deepEqual(
    preallocated(node).map((text) => text.split(' ')[0]),
    ['fqdn:b.x', 'fqdn:c.x'],
  )
})
