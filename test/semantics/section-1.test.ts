// docs/spec/semantics 1, names and patterns: every row of its table, through the production index, through the selector that labels
// answers, and through DNS rules.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mkEndpoint, mkPolicies, Node, wireOf } from '../support/nodes/node.ts'
import { parseMatchName, parsePattern } from '../../src/policy/match/pattern.ts'

interface Row {
  readonly field: 'matchName' | 'matchPattern'
  readonly pattern: string
  readonly yes: readonly string[]
  readonly no: readonly string[]
}

const ROWS: readonly Row[] = [
  {
    field: 'matchName',
    pattern: 'cilium.io',
    yes: ['cilium.io', 'CILIUM.io.'],
    no: ['a.cilium.io'],
  },
  {
    field: 'matchPattern',
    pattern: '*.cilium.io',
    yes: ['www.cilium.io'],
    no: ['cilium.io', 'a.b.cilium.io'],
  },
  {
    field: 'matchPattern',
    pattern: '*cilium.io',
    yes: ['cilium.io', 'xcilium.io'],
    no: ['a.cilium.io'],
  },
  {
    field: 'matchPattern',
    pattern: '*.ci*.io',
    yes: ['x.cilium.io', 'x.ci.io'],
    no: ['cilium.io', 'a.b.ci.io'],
  },
  {
    field: 'matchPattern',
    pattern: '**.cilium.io',
    yes: ['a.cilium.io', 'a.b.c.cilium.io'],
    no: ['cilium.io', 'evilcilium.io'],
  },
  {
    field: 'matchPattern',
    pattern: '*.*.cilium.io',
    yes: ['_sip._tcp.cilium.io'],
    no: ['a.cilium.io'],
  },
  {
    field: 'matchPattern',
    pattern: '*',
    yes: ['cilium.io', 'a.b.c', '.', 'odd\\000octet.io', 'a\\046b.io'],
    no: [],
  },
]

for (const { field, pattern, yes, no } of ROWS) {
  test(`Table: \`${pattern}\` matches ${yes.join(', ')}${no.length > 0 ? `; not ${no.join(', ')}` : ''}`, () => {
    const node = new Node({ pairs: 64 })
    node.setEndpoints([mkEndpoint('a', ['10.0.0.1'])])
    const selector = `{ ${field}: "${pattern}" }`
    node.setPolicies(
      mkPolicies(
        `egress: [ { toFQDNs: [ ${selector} ] }, { toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ ${selector} ] } } ] } ]`,
      ),
    )
    const id = node.endpoint('a').id
    ;[...yes, ...no].forEach((name, i) => {
      const address = `192.0.2.${i + 1}`
      node.learn(id, name, [address])
      const expected = yes.includes(name)
      assert.equal(node.verdict('a', address), expected ? 'allow' : 'deny', `connect to ${name}`)
      assert.equal(node.mayAsk('a', name), expected, `ask ${name}`)
      const labels = expected ? [`fqdn:${pattern}`, 'reserved:world', 'reserved:world-ipv4'] : []
      assert.deepEqual(node.labelsOf(address), labels, name)
    })
  })
}

test('A name is compared by labels: a dot inside a label separates no labels', () => {
  const node = new Node({ pairs: 64 })
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1'])])
  node.setPolicies(
    mkPolicies('egress: [ { toFQDNs: [ { matchName: a.b.io }, { matchPattern: "*.io" } ] } ]'),
  )
  node.learn(node.endpoint('a').id, 'a\\046b.io', ['192.0.2.1'])
  assert.deepEqual(node.labelsOf('192.0.2.1'), [])
  assert.deepEqual(wireOf('A.io'), wireOf('a.io.'), 'case and final dot do not count')
})

test('Pattern grammar: texts that are patterns and names, and texts that are not', () => {
  const rows: readonly (readonly [text: string, canonical: string | undefined, reason: string])[] =
    [
      [' A.IO. ', 'a.io', 'trimmed, lower case, no final dot'],
      ['a***b.io', 'a*b.io', 'a run of stars elsewhere is one'],
      ['***.io', '**.io', 'two or more stars and a dot at the start'],
      ['a.**.io', 'a.*.io', 'not at the start'],
      ['****', '*', 'only stars'],
      ['*.', '*', 'only stars with a final dot'],
      ['a b.io', undefined, 'a blank'],
      ['a..io', undefined, 'an empty label'],
      ['ä.io', undefined, 'not ASCII'],
      ['a'.repeat(256), undefined, 'longer than 255'],
    ]
  for (const [text, canonical, reason] of rows) {
    const result = parsePattern(text, { allowStar: true })
    assert.equal(result.kind === 'ok' ? result.pattern.text : undefined, canonical, reason)
  }
  assert.equal(parseMatchName('*.io').kind, 'bad', 'matchName takes no star')
})
