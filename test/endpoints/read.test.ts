// The label that gives an endpoint its own default egress. An unknown value never means access.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatFault } from '../../src/core/errors.ts'
import { parseEndpoints } from '../../src/endpoints/file.ts'
import { parseResources } from '../../src/endpoints/resources.ts'
import { DEFAULT_EGRESS } from '../../src/policy/compile/default-egress.ts'

const KEY = 'namegate.io/default-egress'

function endpointFaults(labels: string): readonly string[] {
  const text = `endpoints:\n  - name: a\n    addresses: [10.0.0.1]\n    labels: { ${labels} }\n`
  return parseEndpoints(text, 'e').faults.map(formatFault)
}

test('readLabels accepts every default egress, from any source', () => {
  for (const value of DEFAULT_EGRESS) {
    assert.deepEqual(endpointFaults(`${KEY}: ${value}`), [], value)
    assert.deepEqual(endpointFaults(`"k8s:${KEY}": ${value}`), [], value)
  }
})

test('readLabels refuses an unknown default egress, or two of them', () => {
  const expected = 'expected allow, allow-named, allow-known, audit, deny'
  const rows: readonly (readonly [labels: string, fault: string, reason: string])[] = [
    [`${KEY}: allow-all`, `${KEY}"]: found "allow-all", ${expected}`, 'no such value'],
    [`${KEY}: Allow`, `${KEY}"]: found "Allow", ${expected}`, 'in another case'],
    [`${KEY}: ""`, `${KEY}"]: found "", ${expected}`, 'empty'],
    [`${KEY}: true`, `${KEY}"]: found true, expected a text`, 'no text'],
    [`${KEY}: deny, "k8s:${KEY}": allow`, `"k8s:${KEY}"]: found ${KEY} twice`, 'twice'],
  ]
  for (const [labels, fault, reason] of rows) {
    const found = endpointFaults(labels)
    assert.equal(found.length, 1, reason)
    assert.ok(found[0]?.includes(fault), `${reason}: ${found[0]}`)
    assert.match(found[0] ?? '', /^e:4:\d+: endpoints\[0\]\.labels/, reason)
  }
})

test('readLabels refuses a default egress of a resource, which sends nothing', () => {
  const text = `resources:\n  - { name: r, addresses: [10.0.0.1], labels: { ${KEY}: deny } }\n`
  const [fault] = parseResources(text, 'r').faults.map(formatFault)
  assert.match(fault ?? '', /means nothing for a resource, which sends nothing$/)
})

test('parseEndpoints refuses a file without endpoints', () => {
  for (const text of ['', '# nothing\n', '---\n', '{}\n', 'endpoints:\n']) {
    assert.deepEqual(
      parseEndpoints(text, 'e').faults.map(({ message }) => message),
      ["found no endpoints, expected a list ('endpoints: []' for none)"],
      text,
    )
  }
})
