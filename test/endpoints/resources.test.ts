// The resources file: what is loaded, and the faults with their places.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatFault } from '../../src/core/errors.ts'
import { formatPrefix } from '../../src/core/ip.ts'
import { parseResources, repeatedNames } from '../../src/endpoints/resources.ts'

const GOOD = `
resources:
  - name: billing-db
    addresses: [192.0.2.10, "2001:db8::/64"]
    labels: { tier: database, "k8s:team": billing }
`

const NONE = "r.yaml:1:1: found no resources, expected a list ('resources: []' for none)"

describe('parseResources', () => {
  it('loads names, addresses and labels', () => {
    const { resources, faults } = parseResources(GOOD, 'r.yaml')
    assert.deepEqual(faults, [])
    assert.deepEqual(
      resources.map(({ name, addresses, labels }) => [name, addresses.map(formatPrefix), labels]),
      [
        [
          'billing-db',
          ['192.0.2.10/32', '2001:db8::/64'],
          ['external:tier=database', 'k8s:team=billing'],
        ],
      ],
    )
  })

  const faults: readonly (readonly [reason: string, text: string, fault: string])[] = [
    ['an empty file', '', NONE],
    ['comments alone', '# resources: []', NONE],
    ['no resources', '{}', NONE],
    ['no name', 'resources: [ { addresses: [1.2.3.4] } ]', 'r.yaml:1:14: '],
    ['no address', 'resources: [ { name: a, addresses: [] } ]', 'r.yaml:1:36: '],
    ['host bits', 'resources: [ { name: a, addresses: [10.0.0.1/8] } ]', 'host bits must be zero'],
    ['an endpoint key', 'resources: [ { name: a, addresses: [1.2.3.4], cgroup: x } ]', 'cgroup'],
    [
      'our own source',
      'resources: [ { name: a, addresses: [::5], labels: { "cidr:x": y } } ]',
      'cidr',
    ],
    [
      'the same name twice',
      'resources: [ { name: a, addresses: [1.2.3.4] }, { name: a, addresses: [1.2.3.5] } ]',
      'found the name a again',
    ],
  ]
  for (const [reason, text, expected] of faults) {
    it(`refuses the whole file: ${reason}`, () => {
      const result = parseResources(text, 'r.yaml')
      assert.deepEqual(result.resources, [])
      assert.ok(result.faults.length > 0)
      assert.match(result.faults.map(formatFault).join('\n'), new RegExp(escape(expected)))
    })
  }

  it('repeatedNames sees names of several files', () => {
    const first = parseResources(GOOD, 'a.yaml').resources
    const second = parseResources(GOOD, 'b.yaml').resources
    const texts = repeatedNames([...first, ...second]).map(formatFault)
    assert.deepEqual(texts, ['b.yaml:3:5: found the name billing-db again, first at a.yaml:3'])
  })
})

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
