import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LintCode } from '../../src/lint/finding.ts'
import { lint } from '../../src/lint/lint.ts'
import { coversPattern } from '../../src/lint/siblings.ts'
import { namesOfRules } from '../../src/lint/written-names.ts'
import { loadPolicies } from '../../src/policy/load/load.ts'
import { lintText, mkFile } from '../support/nodes/lint.ts'
import { patternOf } from '../support/nodes/node.ts'

/** One list of names under toFQDNs. */
function lintNamesOf(...names: readonly string[]): readonly string[] {
  const items = names.map(
    (name) => `\n        - { ${name.includes('*') ? 'matchPattern' : 'matchName'}: "${name}" }`,
  )
  const text = mkFile(`\n  endpointSelector: {}\n  egress:\n    - toFQDNs:${items.join('')}`)
  return lintText(text).map((each) =>
    each.replace(/^(\d+):\d+/, (_, line) => names[Number(line) - 8] ?? '?'),
  )
}

const LONG = 'a'.repeat(64)

test('lint reports doubtful names and patterns, each at its place', () => {
  const rows: readonly (readonly [
    names: readonly string[],
    found: readonly string[],
    reason: string,
  ])[] = [
    [['cilium.io', '*.cilium.io'], [], 'a domain and one label in front, the usual pair'],
    [['**.cilium.io'], [], 'any depth, said on purpose'],
    [['a*.cilium.io'], [], 'a star in a label behind a letter'],
    [['*cilium.io'], ['*cilium.io engines-differ'], 'a star glued to the name: evilcilium.io'],
    [['**cilium.io'], ['**cilium.io engines-differ'], 'two stars glued'],
    [['www.**.cilium.io'], ['www.**.cilium.io engines-differ'], '** in the middle is one *'],
    [['*.*.cilium.io'], ['*.*.cilium.io engines-differ'], 'exactly two labels here'],
    [['10.0.0.1'], ['10.0.0.1 never-matches'], 'an address is no name'],
    [['10.0.0.256'], ['10.0.0.256 never-matches'], 'an address with a slip'],
    [['1.2.3'], ['1.2.3 never-matches'], 'a number is missing'],
    [['3com.io', '1.0.0.10.in-addr.arpa'], [], 'names with digits'],
    [[`${LONG}.io`], [`${LONG}.io never-matches`], 'a label of 64 octets'],
    [[`${'a'.repeat(63)}.io`], [], 'a label of 63'],
    [['*'], ['* allows-all'], 'every name'],
    [['**.'], ['**. allows-all'], 'every name, said otherwise'],
    [['*', 'cilium.io'], ['* allows-all', '* wider-than-siblings'], 'everything beside a name'],
    [
      ['**.cilium.io', 'www.cilium.io'],
      ['**.cilium.io wider-than-siblings'],
      'matches its sibling',
    ],
    [
      ['*.cilium.io', '**.cilium.io'],
      ['**.cilium.io wider-than-siblings'],
      'a pattern inside a pattern',
    ],
    [['*.cilium.io', 'a.b.cilium.io'], [], 'another depth'],
    [['*.com', 'www.example.com'], ['*.com wider-than-siblings'], 'a whole top-level domain'],
    [['*.com', '*.io'], [], 'all are wide'],
    [['db.prod.svc.cluster.local'], ['db.prod.svc.cluster.local cluster-service'], 'a Service'],
    [['*.svc.cluster.local'], ['*.svc.cluster.local cluster-service'], 'all of them'],
    [['db.prod.svc'], ['db.prod.svc cluster-service'], 'a Service without the domain'],
    [['cluster.local.example.com'], [], 'another domain'],
  ]
  for (const [names, found, reason] of rows) assert.deepEqual(lintNamesOf(...names), found, reason)
})

test('lint calls a line of an allow-list superfluous only if the wider line has its ports', () => {
  const rows: readonly (readonly [text: string, found: readonly string[], reason: string])[] = [
    ['*.a.io\napi.a.io:443\n', ['1 api.a.io in line 2'], 'every port covers one'],
    ['*.a.io:443\napi.a.io:443/tcp\n', ['1 api.a.io in line 2'], 'both protocols cover one'],
    ['*.a.io:443/tcp\napi.a.io:443\n', [], 'UDP is not covered'],
    ['*.a.io:443\napi.a.io:8443\n', [], 'another port'],
    ['*.a.io:443\napi.a.io\n', [], 'one port covers not every port'],
    ['api.a.io:1\n*.a.io:2\napi.a.io:2\n', ['2 api.a.io in line 3'], 'one of two lines'],
  ]
  for (const [text, found, reason] of rows) {
    const { policies } = loadPolicies(text, 'web.allow')
    const base = { notes: [], endpoints: undefined, aliases: undefined, portable: false }
    const said = lint({ ...base, policies, names: policies.map(namesOfRules) }).map(
      ({ position, message, remedy }) => {
        const list = message.replace(/^.*of the same list: /, '')
        assert.ok(remedy.startsWith(`remove ${list}, or `), reason)
        return `${position.line} ${list}`
      },
    )
    assert.deepEqual(said, found, reason)
  }
})

test('lint reports the column of each place in a file, also in dns rules', () => {
  const text = mkFile(
    `
  endpointSelector: {}
  egress:
    - toPorts:
        - ports: [ { port: "53" } ]
          rules: { dns: [ { matchPattern: "*cilium.io" }, { matchName: db.prod.svc.cluster.local } ] }
`,
  )
  assert.deepEqual(lintText(text), ['9:43 engines-differ'], 'asking for a Service is not doubtful')
})

test('lint reports common patterns only in files that must be portable', () => {
  const text = mkFile(
    `{ endpointSelector: {}, egress: [ { toFQDNs: [ { matchPattern: "*.a.io" }, { matchPattern: "**.b.io" }, { matchName: c.io } ] } ] }`,
  )
  assert.deepEqual(lintText(text), [])
  assert.deepEqual(
    lintText(text, { portable: true }).map((each) => each.split(' ')[1]),
    ['engines-differ', 'engines-differ'],
  )
})

test('lint reports rules that deny rules revoke completely', () => {
  const rows: readonly (readonly [allow: string, deny: string, found: boolean, reason: string])[] =
    [
      ['toCIDR: [ 10.1.0.0/16 ]', 'toCIDR: [ 10.0.0.0/8 ]', true, 'inside the denied prefix'],
      ['toCIDR: [ 10.0.0.0/8 ]', 'toCIDR: [ 10.1.0.0/16 ]', false, 'wider than the denied prefix'],
      [
        'toCIDR: [ 10.1.0.0/16, 192.0.2.0/24 ]',
        'toCIDR: [ 10.0.0.0/8 ]',
        false,
        'one prefix is left',
      ],
      [
        'toCIDR: [ 10.1.0.0/16 ]',
        'toCIDRSet: [ { cidr: 10.0.0.0/8, except: [ 10.1.2.0/24 ] } ]',
        false,
        'an exception is left',
      ],
      [
        'toCIDR: [ 10.1.0.0/16 ]',
        'toCIDRSet: [ { cidr: 10.0.0.0/8, except: [ 10.2.0.0/16 ] } ]',
        true,
        'the exception is elsewhere',
      ],
      [
        'toFQDNs: [ { matchName: a.io } ]',
        'toEntities: [ world ]',
        true,
        'names lead to the world',
      ],
      ['toFQDNs: [ { matchName: a.io } ]', 'toEntities: [ world-ipv4 ]', false, 'IPv6 is left'],
      ['toEntities: [ cluster ]', 'toEntities: [ world ]', false, 'the cluster is not the world'],
      ['toEntities: [ host ]', 'toEntities: [ cluster ]', true, 'the host is of the cluster'],
      [
        'toCIDR: [ 10.0.0.0/8 ], toPorts: [ { ports: [ { port: "443" } ] } ]',
        'toCIDR: [ 10.0.0.0/8 ], toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ]',
        false,
        'UDP is left',
      ],
      [
        'toCIDR: [ 10.0.0.0/8 ], toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ]',
        'toCIDR: [ 10.0.0.0/8 ], toPorts: [ { ports: [ { port: "400", endPort: 500, protocol: TCP } ] } ]',
        true,
        'inside the range',
      ],
      [
        'toCIDR: [ 10.0.0.0/8 ], toPorts: [ { ports: [ { port: "80", protocol: TCP } ] } ]',
        'toEntities: [ all ]',
        true,
        'everything is denied',
      ],
      [
        'toPorts: [ { ports: [ { port: "80", protocol: TCP } ] } ]',
        'toCIDR: [ 0.0.0.0/0 ]',
        false,
        'any peer is more',
      ],
      [
        'toPorts: [ { ports: [ { port: "53" } ], rules: { dns: [ { matchName: a.io } ] } } ]',
        'toEntities: [ all ]',
        false,
        'rules.dns opens nothing that could be taken back',
      ],
    ]
  for (const [allow, deny, found, reason] of rows) {
    const text = mkFile(
      `\n  endpointSelector: {}\n  egress:\n    - { ${allow} }\n  egressDeny:\n    - { ${deny} }`,
    )
    assert.deepEqual(lintText(text), found ? ['7:7 shadowed-by-deny'] : [], reason)
  }
})

test('lint counts deny rules of other policies only if they are for the same endpoints', () => {
  const rows: readonly (readonly [
    kind: string,
    selector: string,
    found: boolean,
    reason: string,
  ])[] = [
    ['CiliumClusterwideNetworkPolicy', '{}', true, 'for all'],
    ['CiliumClusterwideNetworkPolicy', '{ matchLabels: { app: a } }', true, 'for the same label'],
    [
      'CiliumClusterwideNetworkPolicy',
      '{ matchLabels: { app: a, tier: web } }',
      false,
      'for some of them',
    ],
    ['CiliumClusterwideNetworkPolicy', '{ matchLabels: { app: b } }', false, 'for others'],
    ['CiliumNetworkPolicy', '{}', false, 'in another namespace'],
  ]
  for (const [kind, selector, found, reason] of rows) {
    const deny = `---\napiVersion: cilium.io/v2\nkind: ${kind}\nmetadata: { name: q }\nspec: { endpointSelector: ${selector}, egressDeny: [ { toEntities: [ world ] } ] }\n`
    const text = mkFile(
      '{ endpointSelector: { matchLabels: { app: a } }, egress: [ { toCIDR: [ 192.0.2.0/24 ] } ] }',
      deny,
    )
    const codes = lintText(text).map((each) => each.split(' ')[1])
    assert.deepEqual(codes, found ? ['shadowed-by-deny'] : [], reason)
    const audited = text.replace(
      '{ name: q }',
      '{ name: q, annotations: { namegate.io/audit: "true" } }',
    )
    assert.deepEqual(lintText(audited), [], `${reason}, but audited: it takes nothing back`)
  }
})

test('lint reports rules and policies that select nothing', () => {
  const rows: readonly (readonly [spec: string, codes: readonly LintCode[], reason: string])[] = [
    ['{ endpointSelector: {}, egress: [ { toCIDR: [] } ] }', ['never-matches'], 'no peer'],
    [
      '{ endpointSelector: {}, egress: [ { toCIDRSet: [ { cidr: 10.0.0.0/8, except: [ 10.0.0.0/8 ] } ] } ] }',
      ['never-matches'],
      'excepted whole',
    ],
    [
      '{ endpointSelector: {}, egress: [ { toCIDRSet: [ { cidr: 10.0.0.0/8, except: [ 10.0.0.0/9 ] } ] } ] }',
      [],
      'half of it is left',
    ],
    [
      '{ endpointSelector: { matchLabels: { app: b } }, egress: [ {} ] }',
      ['selects-nothing'],
      'no endpoint has the label',
    ],
    ['{ endpointSelector: { matchLabels: { app: a } }, egress: [ {} ] }', [], 'one has'],
    [
      '{ endpointSelector: { matchLabels: { app: a }, matchExpressions: [ { key: app, operator: NotIn, values: [ a ] } ] }, egress: [ {} ] }',
      ['never-matches'],
      'a label that may not be',
    ],
    [
      '{ endpointSelector: { matchExpressions: [ { key: app, operator: DoesNotExist }, { key: app, operator: Exists } ] }, egress: [ {} ] }',
      ['never-matches'],
      'there and not there',
    ],
  ]
  const endpoints = [['k8s:app=a', 'k8s:io.kubernetes.pod.namespace=prod'], ['k8s:app=b']]
  for (const [spec, codes, reason] of rows) {
    const found = lintText(mkFile(spec), { endpoints }).map((each) => each.split(' ')[1])
    assert.deepEqual(found, codes, reason)
  }
  const idle = mkFile('{ endpointSelector: { matchLabels: { app: b } }, egress: [ {} ] }')
  assert.deepEqual(lintText(idle), [], 'unknown without endpoints')
})

test('lint reports alias targets that other selectors match, only from recorded chains', () => {
  const text = mkFile(
    '{ endpointSelector: {}, egress: [ { toFQDNs: [ { matchName: www.a.io }, { matchName: edge.b.net } ] } ] }',
  )
  const codes = (chains: readonly (readonly [string, readonly string[]])[]): readonly string[] =>
    lintText(text, { aliases: new Map(chains) }).map((each) => each.split(' ')[1] ?? '')
  assert.deepEqual(codes([['www.a.io', ['x.c.net', 'edge.b.net']]]), ['cname-target'])
  assert.deepEqual(codes([['other.a.io', ['edge.b.net']]]), [], 'no selector has the alias')
  assert.deepEqual(codes([]), [])
  assert.deepEqual(lintText(text), [])
})

test('coversPattern compares two patterns', () => {
  const rows = [
    ['*', '**.x', true],
    ['**.x', '*', false],
    ['**.x', '*.x', true],
    ['*.x', '**.x', false],
    ['*.x', 'a*.x', true],
    ['a*.x', '*.x', false],
    ['**.x', '**.a.x', true],
    ['**.a.x', '**.x', false],
    ['*.x', 'a.x', true],
    ['*a.x', '*.x', false],
  ] as const
  for (const [outer, inner, covers] of rows) {
    assert.equal(coversPattern(patternOf(outer), patternOf(inner)), covers, `${outer} and ${inner}`)
  }
})
