// Names under `toFQDNs` that no rule lets the endpoints ask. docs/spec/semantics.md section 2 "DNS" says what lets them ask.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lint } from '../../src/lint/lint.ts'
import { loadPolicies } from '../../src/policy/load/load.ts'
import { lintText, mkFile } from '../support/nodes/lint.ts'

const REACH = 'toFQDNs: [ { matchPattern: "*.a.io" } ]'

function dns(names: string, ports = '{ port: "53", protocol: ANY }'): string {
  return `{ toPorts: [ { ports: [ ${ports} ], rules: { dns: [ ${names} ] } } ] }`
}

const ROWS: readonly (readonly [rules: string, found: number, why: string])[] = [
  ['', 1, 'nothing about DNS'],
  [dns('{ matchPattern: "*" }'), 0, 'every name can be asked'],
  [dns('{ matchPattern: "*.a.io" }'), 0, 'the same pattern'],
  [dns('{ matchName: www.a.io }'), 0, 'one of its names'],
  [dns('{ matchName: www.b.io }'), 1, 'only another name'],
  [dns('{ matchName: www.a.io }', '{ port: "5353" }'), 1, 'rules.dns for another port'],
  [
    dns('{ matchName: www.a.io }', '{ port: "53", protocol: UDP }'),
    0,
    'UDP alone, which one-transport reports',
  ],
  ['{ toPorts: [ { ports: [ { port: "53" } ] } ] }', 0, 'port 53 without rules.dns'],
  ['{ toEntities: [ world ] }', 0, 'the world, and thereby its servers'],
  ['{ toCIDR: [ 192.0.2.0/24 ] }', 1, 'addresses without port 53'],
]

test('lint reports names under toFQDNs that no rule lets the endpoints ask', () => {
  for (const withoutRules of ['allow', 'deny'] as const) {
    for (const [rules, count, why] of ROWS) {
      const more = rules === '' ? '' : `, ${rules}`
      const text = mkFile(`{ endpointSelector: {}, egress: [ { ${REACH} }${more} ] }`)
      const found = lintText(text, { withoutRules }).filter((each) => each.endsWith('never-asked'))
      assert.equal(found.length, count, why)
    }
  }
})

test('lint counts the rules.dns of policies that select at least the same endpoints', () => {
  const other = (selector: string): string =>
    `---\napiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: q, namespace: prod }\nspec: { endpointSelector: { ${selector} }, egress: [ ${dns('{ matchPattern: "*" }')} ] }\n`
  const rows: readonly (readonly [selector: string, found: number, why: string])[] = [
    ['', 0, 'it selects all'],
    ['matchLabels: { app: web }', 0, 'it selects the same'],
    ['matchLabels: { app: db }', 1, 'it selects others'],
  ]
  for (const [selector, count, why] of rows) {
    const spec = `{ endpointSelector: { matchLabels: { app: web } }, egress: [ { ${REACH} } ] }`
    const found = lintText(mkFile(spec, other(selector)), { withoutRules: 'deny' })
    assert.equal(found.filter((each) => each.endsWith('never-asked')).length, count, why)
  }
})

test('lint finds no such names in ClusterNetworkPolicies, and counts their domainNames', () => {
  const tier =
    '---\napiVersion: policy.networking.k8s.io/v1alpha2\nkind: ClusterNetworkPolicy\nmetadata: { name: t }\nspec: { tier: Admin, priority: 1, subject: { namespaces: {} }, egress: [{ action: Accept, to: [{ domainNames: ["*.NAME"] }] }] }\n'
  const plain = `{ endpointSelector: {}, egress: [ { ${REACH} } ] }`
  const rows: readonly (readonly [name: string, found: number, why: string])[] = [
    ['a.io', 0, 'the names of the other rule can be asked'],
    ['b.io', 1, 'only the other rule has a finding'],
  ]
  for (const [name, count, why] of rows) {
    const found = lintText(mkFile(plain, tier.replace('NAME', name)), { withoutRules: 'deny' })
    assert.equal(found.filter((each) => each.endsWith('never-asked')).length, count, why)
  }
})

test('lint reports no unasked names in an allow-list, because its names can be asked', () => {
  const { policies } = loadPolicies('www.a.io\n*.b.io:443\n', 'web.allow')
  const base = { names: [], notes: [], endpoints: undefined, aliases: undefined, portable: false }
  assert.deepEqual(lint({ ...base, policies, withoutRules: 'deny' }), [])
})

test('lint says what dns.without-rules allows now', () => {
  const { policies } = loadPolicies(
    mkFile(`{ endpointSelector: {}, egress: [ { ${REACH} } ] }`),
    'p',
  )
  const base = { names: [], notes: [], endpoints: undefined, aliases: undefined, portable: false }
  const said = (withoutRules: 'allow' | 'deny'): string =>
    lint({ ...base, policies, withoutRules })
      .map(({ message }) => message)
      .join()
  assert.match(
    said('deny'),
    /^no rules\.dns lets the endpoints ask \*\.a\.io: the rule allows nothing \(dns/,
  )
  assert.match(
    said('allow'),
    /allows nothing in Cilium, with dns\.without-rules: deny, or once another/,
  )
})
