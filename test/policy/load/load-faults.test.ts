import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatFault } from '../../../src/core/errors.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'

const HEADER = 'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: p }\n'

function faultsOf(text: string): readonly string[] {
  const { policies, faults } = loadPolicies(text, 'f')
  if (faults.length > 0) assert.deepEqual(policies, [])
  return faults.map((fault) => formatFault(fault).replace(/^f:/, ''))
}

/** Faults of one egress rule, without their common place and path. */
function ruleFaults(rule: string, list = 'egress'): readonly string[] {
  const text = `${HEADER}spec:\n  endpointSelector: {}\n  ${list}:\n    - ${rule}\n`
  return faultsOf(text).map((line) => line.replace(`spec.${list}[0].`, ''))
}

const RULES: readonly (readonly [rule: string, faults: readonly string[]])[] = [
  ['toRequires: []', ['7:7: toRequires: is not supported: say it in toEndpoints']],
  ['toServices: []', ['7:7: toServices: is not supported: use toEndpoints, toFQDNs or toCIDR']],
  ['toGroups: []', ['7:7: toGroups: is not supported: use toFQDNs or toCIDRSet']],
  ['toNodes: []', ['7:7: toNodes: is not supported: use toEntities: [host] or toCIDR']],
  ['icmps: []', ['7:7: icmps: is not supported: a rule without toPorts is about ICMP as well']],
  [
    'authentication: {}',
    ['7:7: authentication: is not supported: namegate decides by address and port'],
  ],
  // A rule without peers means any peer. A list that was commented out must not mean that.
  ['toFQDNs:', ['7:7: toFQDNs: found nothing, expected a list; [] selects nothing']],
  ['toPorts: null', ['7:16: toPorts: found nothing, expected a list; [] selects nothing']],
  ['toFqdns: []', ['7:7: unknown field toFqdns; did you mean "toFQDNs"?']],
  [
    'banana: []',
    [
      '7:7: unknown field banana, expected toFQDNs, toEndpoints, toCIDR, toCIDRSet, toEntities or toPorts',
    ],
  ],
  ['toCIDR: 10.0.0.0/8', ['7:15: toCIDR: found "10.0.0.0/8", expected a list']],
  ['toCIDR: [x]', ['7:16: toCIDR[0]: expected an address or prefix, found "x"']],
  [
    'toCIDR: [5]',
    ['7:16: toCIDR[0]: found 5, expected a prefix, such as 10.0.0.0/8 (write it in quotes)'],
  ],
  ['toCIDRSet: [{}]', ['7:19: toCIDRSet[0]: found no cidr, expected one']],
  [
    'toCIDRSet: [{ cidrGroupRef: x }]',
    ['7:21: toCIDRSet[0].cidrGroupRef: is not supported: write the prefixes'],
  ],
  [
    'toCIDRSet: [{ cidr: 10.0.0.0/8, except: [192.0.2.0/24] }]',
    ['7:48: toCIDRSet[0].except[0]: found "192.0.2.0/24", expected a prefix inside 10.0.0.0/8'],
  ],
  [
    'toCIDRSet: [{ cidr: "::/0", except: [10.0.0.0/8] }]',
    ['7:44: toCIDRSet[0].except[0]: found "10.0.0.0/8", expected a prefix inside ::/0'],
  ],
  [
    'toEntities: [kube-apiserver]',
    [
      '7:20: toEntities[0]: kube-apiserver is not supported: use toCIDR, or a resource and toEndpoints',
    ],
  ],
  [
    'toEntities: [World]',
    [
      '7:20: toEntities[0]: found "World", expected host, cluster, world, world-ipv4, world-ipv6, all or none',
    ],
  ],
  ['toFQDNs: [{}]', ['7:17: toFQDNs[0]: found neither matchName nor matchPattern, expected one']],
  [
    'toFQDNs: [{ matchName: a, matchPattern: b }]',
    ['7:17: toFQDNs[0]: found both matchName and matchPattern, expected one of them'],
  ],
  [
    'toFQDNs: [{ matchName: "*.a" }]',
    [
      '7:30: toFQDNs[0].matchName: found a * in a matchName, expected a plain name (stars belong in matchPattern)',
    ],
  ],
  [
    'toFQDNs: [{ matchPattern: a..b }]',
    [
      '7:33: toFQDNs[0].matchPattern: found an empty label in "a..b", expected text between two dots',
    ],
  ],
  [
    'toFQDNs: [{ matchname: a }]',
    [
      '7:17: toFQDNs[0]: found neither matchName nor matchPattern, expected one',
      '7:19: unknown field toFQDNs[0].matchname; did you mean "matchName"?',
    ],
  ],
  [
    '{ toFQDNs: [{ matchName: a }], toCIDR: [10.0.0.0/8] }',
    ['7:38: toCIDR: can not stand beside toFQDNs in one rule; write two rules'],
  ],
  [
    '{ toEntities: [world], toCIDR: [10.0.0.0/8] }',
    ['7:9: toEntities: can not stand beside toCIDR in one rule; write two rules'],
  ],
  [
    'toPorts: [{ rules: { dns: [{ matchName: a }] } }]',
    ['7:17: toPorts[0]: found no ports beside rules, expected some'],
  ],
  [
    'toPorts: [{ ports: [{}] }]',
    [
      '7:27: toPorts[0].ports[0]: found no port, expected a port from 0 to 65535, or the name of one',
    ],
  ],
  [
    'toPorts: [{ ports: [{ port: http-of-the-shop }] }]',
    [
      '7:35: toPorts[0].ports[0].port: found "http-of-the-shop", expected a port from 0 to 65535, or the name of one',
    ],
  ],
  [
    'toPorts: [{ ports: [{ port: http, endPort: 90 }] }]',
    ['7:50: toPorts[0].ports[0].endPort: can not stand beside a named port'],
  ],
  [
    'toPorts: [{ ports: [{ port: 65536 }] }]',
    [
      '7:35: toPorts[0].ports[0].port: found 65536, expected a port from 0 to 65535, or the name of one',
    ],
  ],
  [
    'toPorts: [{ ports: [{ port: "010" }] }]',
    [
      '7:35: toPorts[0].ports[0].port: found "010", expected a port from 0 to 65535, or the name of one',
    ],
  ],
  [
    'toPorts: [{ ports: [{ port: -1 }] }]',
    [
      '7:35: toPorts[0].ports[0].port: found -1, expected a port from 0 to 65535, or the name of one',
    ],
  ],
  [
    'toPorts: [{ ports: [{ port: 90, endPort: 80 }] }]',
    ['7:48: toPorts[0].ports[0].endPort: found 80, expected 90 or more, as port is'],
  ],
  [
    'toPorts: [{ ports: [{ port: 0, endPort: 80 }] }]',
    [
      '7:47: toPorts[0].ports[0].endPort: found an endPort beside port 0, which is every port already',
    ],
  ],
  [
    'toPorts: [{ ports: [{ port: 1, protocol: ICMP }] }]',
    [
      '7:48: toPorts[0].ports[0].protocol: ICMP is not supported: a rule without toPorts is about it as well',
    ],
  ],
  [
    'toPorts: [{ ports: [{ port: 1, protocol: tpc }] }]',
    ['7:48: toPorts[0].ports[0].protocol: found "tpc", expected TCP, UDP, SCTP or ANY'],
  ],
  [
    'toPorts: [{ ports: [{ port: 1 }], rules: { http: [{}] } }]',
    ['7:50: toPorts[0].rules.http: is not supported: namegate decides by name, address and port'],
  ],
  [
    'toPorts: [{ ports: [{ port: 1 }], rules: { kafka: [{}] } }]',
    ['7:50: toPorts[0].rules.kafka: is not supported: namegate decides by name, address and port'],
  ],
  [
    'toPorts: [{ ports: [{ port: 0 }], rules: { dns: [{ matchName: a }] } }]',
    ['7:35: toPorts[0].ports[0].port: found 0, expected a port from 1 to 65535 beside rules.dns'],
  ],
  [
    'toPorts: [{ ports: [{ port: 53, endPort: 54 }], rules: { dns: [{ matchName: a }] } }]',
    ['7:48: toPorts[0].ports[0].endPort: can not stand beside rules.dns: write single ports'],
  ],
  [
    'toPorts: [{ ports: [{ port: 1 }], serverNames: [a] }]',
    ['7:41: toPorts[0].serverNames: is not supported: use toFQDNs'],
  ],
  [
    'toPorts: [{ ports: [{ port: 1 }], terminatingTLS: {} }]',
    [
      '7:41: toPorts[0].terminatingTLS: is not supported: namegate decides by name, address and port',
    ],
  ],
]

for (const [rule, faults] of RULES) {
  test(`loadPolicies refuses the egress rule ${rule}`, () =>
    assert.deepEqual(ruleFaults(rule), faults))
}

const DENY_RULES: readonly (readonly [rule: string, faults: readonly string[]])[] = [
  ['toFQDNs: []', ['7:7: toFQDNs: is not supported in egressDeny: names can only allow']],
  [
    'toPorts: [{ ports: [{ port: 53 }], rules: { dns: [{ matchName: a }] } }]',
    ['7:42: toPorts[0].rules: is not supported in egressDeny: deny the port itself'],
  ],
]

for (const [rule, faults] of DENY_RULES) {
  test(`loadPolicies refuses the egressDeny rule ${rule}`, () => {
    assert.deepEqual(ruleFaults(rule, 'egressDeny'), faults)
  })
}

test('loadPolicies reports every fault of a file at once, in its order', () => {
  const text = `${HEADER}spec:
  endpointSelector: {}
  egress:
    - toCIDR: [x]
      toPorts:
        - ports: [{ port: http_ }]
    - toFQDNs: [{ matchName: "a b" }]
---
kind: List
`
  assert.deepEqual(faultsOf(text), [
    '7:16: spec.egress[0].toCIDR[0]: expected an address or prefix, found "x"',
    '9:27: spec.egress[0].toPorts[0].ports[0].port: found "http_", expected a port from 0 to 65535, or the name of one',
    '10:30: spec.egress[1].toFQDNs[0].matchName: found the character " ", expected letters, digits, - _ . or *',
    '12:7: kind: is not supported: write its items as documents of their own',
  ])
})

const fragment = fc.constantFrom(
  'apiVersion: cilium.io/v2',
  'kind: CiliumNetworkPolicy',
  'kind: CiliumClusterwideNetworkPolicy',
  'metadata: { name: p, namespace: x }',
  'metadata: [1]',
  'spec:',
  'specs: [{}, null, 5, { endpointSelector: [] }]',
  '  endpointSelector: { matchLabels: { a: b, ":": 5, c: null } }',
  '  egress: [{ toFQDNs: [{ matchName: a.io }] }, null, 7]',
  '  egress:',
  '    - toCIDRSet: [{ cidr: 10.0.0.0/8, except: [x, 10.0.0.0/9] }]',
  '    - toPorts: [{ ports: [{ port: 53, endPort: x }], rules: { dns: [{}, 5] } }]',
  '    - toPorts: &a [*a]',
  '  egressDeny: [{ toPorts: [{ ports: null }] }]',
  '  enableDefaultDeny: { egress: 5 }',
  '---',
  '? {a: b}',
  '__proto__: { kind: x }',
)

const example = readFileSync('config/policies/example.yaml', 'utf8')
const document = fc.oneof(
  fc.constant(example),
  fc
    .tuple(fc.boolean(), fc.array(fragment, { maxLength: 8 }))
    .map(([withHeader, lines]) =>
      [...(withHeader ? [`${HEADER}spec:`, '  endpointSelector: {}'] : []), ...lines].join('\n'),
    ),
)

test('loadPolicies never throws on mutated documents, and gives faults or policies', () => {
  const counts = { loaded: 0, refused: 0 }
  fc.assert(
    fc.property(
      document,
      fc.nat({ max: 1_000 }),
      fc.string({ unit: 'binary', maxLength: 3 }),
      (text, at, noise) => {
        const mutated = text.slice(0, at) + noise + text.slice(at + noise.length)
        if (faultsOf(mutated).length > 0) counts.refused++
        else counts.loaded++
      },
    ),
    { numRuns: 2_000 },
  )
  assert.ok(counts.loaded > 100 && counts.refused > 100, JSON.stringify(counts))
})
