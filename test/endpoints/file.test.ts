import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatFault } from '../../src/core/errors.ts'
import { containsPrefix, formatPrefix, truncatePrefix, type Prefix } from '../../src/core/ip.ts'
import { overlapFaults, parseEndpoints, type EndpointRecord } from '../../src/endpoints/file.ts'

function faultsOf(text: string): readonly string[] {
  const { endpoints, faults } = parseEndpoints(text, 'e')
  if (faults.length > 0) assert.deepEqual(endpoints, [])
  return faults.map((fault) => formatFault(fault).replace(/^e:/, ''))
}

test('parseEndpoints reads every field', () => {
  const { endpoints, faults } = parseEndpoints(
    `endpoints:
  - name: shop-1
    addresses: [10.0.1.5, "fd00::5", 10.1.0.0/16]
    labels: { app: shop, "k8s:io.kubernetes.pod.namespace": prod, "k8s:flag": "" }
    interface: lxc1
    audit: true
  - name: inside
    addresses: [10.0.1.6]
    interface: eth0
    hook: egress
  - { name: batch, cgroup: /shop.slice/batch/ }
  - { name: bare, addresses: ["::ffff:192.0.2.1"] }
`,
    'e',
  )
  assert.deepEqual(faults, [])
  assert.deepEqual(
    endpoints.map(({ addresses, addressPositions, position, ...rest }) => ({
      ...rest,
      addresses: addresses.map(formatPrefix),
      places: addressPositions.map(({ line, column }) => `${line}:${column}`),
      line: position.line,
    })),
    [
      {
        name: 'shop-1',
        addresses: ['10.0.1.5/32', 'fd00::5/128', '10.1.0.0/16'],
        places: ['3:17', '3:27', '3:38'],
        labels: ['external:app=shop', 'k8s:flag', 'k8s:io.kubernetes.pod.namespace=prod'],
        hook: { kind: 'interface', name: 'lxc1', side: 'ingress' },
        audit: true,
        line: 2,
      },
      {
        name: 'inside',
        addresses: ['10.0.1.6/32'],
        places: ['8:17'],
        labels: [],
        hook: { kind: 'interface', name: 'eth0', side: 'egress' },
        audit: false,
        line: 7,
      },
      {
        name: 'batch',
        addresses: [],
        places: [],
        labels: [],
        hook: { kind: 'cgroup', path: 'shop.slice/batch' },
        audit: false,
        line: 11,
      },
      {
        name: 'bare',
        addresses: ['192.0.2.1/32'],
        places: ['12:31'],
        labels: [],
        hook: { kind: 'none' },
        audit: false,
        line: 12,
      },
    ],
  )
})

test('parseEndpoints reads the example of the repository and an empty list', () => {
  const file = 'config/endpoints.yaml'
  const { endpoints, faults } = parseEndpoints(readFileSync(file, 'utf8'), file)
  assert.deepEqual(faults.map(formatFault), [])
  assert.deepEqual(
    endpoints.map(({ name, addresses, labels }) => [name, addresses.map(formatPrefix), labels]),
    [['laptop', ['127.0.0.1/32'], ['external:app=laptop']]],
  )
  assert.deepEqual(parseEndpoints('endpoints: []\n', 'e'), { endpoints: [], faults: [] })
})

/** One endpoint in flow style. The path of its faults is without the common part. */
const CGROUP_PATH = 'a path inside the cgroup2 mount, such as shop.slice'
const ROWS: readonly (readonly [endpoint: string, faults: readonly string[]])[] = [
  [
    '{}',
    [
      '1:13: endpoints[0]: found no address, expected at least one',
      '1:13: endpoints[0]: found no name, expected one',
    ],
  ],
  ['5', ['1:13: endpoints[0]: found 5, expected a mapping']],
  ['{ name: a }', ['1:13: endpoints[0]: found no address, expected at least one']],
  [
    '{ name: a, addresses: [] }',
    ['1:35: endpoints[0].addresses: found no address, expected at least one'],
  ],
  [
    '{ name: 5, addresses: [10.0.0.1] }',
    [
      '1:21: endpoints[0].name: found 5, expected a name of 1 to 253 letters, digits, - _ . / and :, a letter or digit first (write it in quotes)',
    ],
  ],
  [
    '{ name: "a b", addresses: [10.0.0.1] }',
    [
      '1:21: endpoints[0].name: found "a b", expected a name of 1 to 253 letters, digits, - _ . / and :, a letter or digit first',
    ],
  ],
  [
    '{ name: a, adresses: [10.0.0.1] }',
    [
      '1:13: endpoints[0]: found no address, expected at least one',
      '1:24: unknown field endpoints[0].adresses; did you mean "addresses"?',
    ],
  ],
  [
    '{ name: a, addresses: [x] }',
    ['1:36: endpoints[0].addresses[0]: expected an address or prefix, found "x"'],
  ],
  [
    '{ name: a, addresses: [10.0.0.1/8] }',
    ['1:36: endpoints[0].addresses[0]: host bits must be zero: write 10.0.0.0/8, not 10.0.0.1/8'],
  ],
  [
    '{ name: a, addresses: 10.0.0.1 }',
    [
      '1:35: endpoints[0].addresses: found "10.0.0.1", expected a list',
      '1:35: endpoints[0].addresses: found no address, expected at least one',
    ],
  ],
  [
    '{ name: a, addresses: [10.0.0.1], labels: { app: 5 } }',
    ['1:62: endpoints[0].labels.app: found 5, expected a text (write it in quotes)'],
  ],
  [
    '{ name: a, addresses: [10.0.0.1], labels: [app] }',
    ['1:55: endpoints[0].labels: found a list, expected a mapping'],
  ],
  [
    '{ name: a, addresses: [10.0.0.1], labels: { "a=b": c } }',
    ['1:57: endpoints[0].labels["a=b"]: found "a=b", expected a label key without blanks and ='],
  ],
  [
    '{ name: a, addresses: [10.0.0.1], labels: { app: x, external:app: y } }',
    ['1:65: endpoints[0].labels["external:app"]: found the label external:app twice'],
  ],
  [
    '{ name: a, addresses: [10.0.0.1], labels: { "fqdn:x": y } }',
    [
      '1:57: endpoints[0].labels["fqdn:x"]: found the source fqdn, which is not for endpoints, expected k8s, external or one of your own',
    ],
  ],
  [
    '{ name: a, addresses: [10.0.0.1], labels: { io.kubernetes.pod.namespace: y } }',
    [
      '1:57: endpoints[0].labels["io.kubernetes.pod.namespace"]: found the source external, expected "k8s:io.kubernetes.pod.namespace"',
    ],
  ],
  [
    '{ name: a, addresses: [10.0.0.1], audit: "no" }',
    ['1:54: endpoints[0].audit: found "no", expected true or false'],
  ],
  [
    '{ name: a, addresses: [10.0.0.1], interface: x, cgroup: y }',
    ['1:61: endpoints[0].cgroup: can not stand beside interface: an endpoint has one of them'],
  ],
  [
    '{ name: a, addresses: [10.0.0.1], hook: egress }',
    ['1:47: endpoints[0].hook: can not stand without interface'],
  ],
  [
    '{ name: a, addresses: [10.0.0.1], interface: x, hook: out }',
    ['1:67: endpoints[0].hook: found "out", expected ingress or egress'],
  ],
  [
    '{ name: a, addresses: [10.0.0.1], interface: sixteen-letters-x }',
    [
      '1:58: endpoints[0].interface: found "sixteen-letters-x", expected the name of an interface, 1 to 15 characters',
    ],
  ],
  [
    '{ name: a, addresses: [10.0.0.1], interface: a/b }',
    [
      '1:58: endpoints[0].interface: found "a/b", expected the name of an interface, 1 to 15 characters',
    ],
  ],
  [
    '{ name: a, cgroup: a/../b }',
    [`1:32: endpoints[0].cgroup: found "a/../b", expected ${CGROUP_PATH}`],
  ],
  ['{ name: a, cgroup: / }', [`1:32: endpoints[0].cgroup: found "/", expected ${CGROUP_PATH}`]],
  [
    "{ name: a, cgroup: 'a*b' }",
    [
      '1:32: endpoints[0].cgroup: found "a*b", expected a path without " and *, because a rule of nftables names the cgroup',
    ],
  ],
  [
    `{ name: a, cgroup: ${'x/'.repeat(31)}x }`,
    ['1:32: endpoints[0].cgroup: found 32 levels, expected at most 31'],
  ],
]

for (const [endpoint, expected] of ROWS) {
  test(`parseEndpoints refuses ${endpoint}`, () => {
    assert.deepEqual([...faultsOf(`endpoints: [${endpoint}]\n`)].sort(), [...expected].sort())
  })
}

test('parseEndpoints refuses addresses and names that two endpoints have', () => {
  assert.deepEqual(
    faultsOf(`endpoints:
  - { name: a, addresses: [10.0.0.0/24, 10.0.0.7] }
  - { name: b, addresses: [10.0.0.5] }
  - { name: c, addresses: [10.0.0.0/8] }
  - { name: a, addresses: ["fd00::1"] }
  - { name: d, addresses: ["fd00::1"] }
`),
    [
      "3:28: b: found 10.0.0.5/32, which overlaps a's 10.0.0.0/24, first at e:2",
      "4:28: c: found 10.0.0.0/8, which overlaps a's 10.0.0.0/24, first at e:2",
      '5:5: found the name a again, first at e:2',
      "6:28: d: found fd00::1/128, which overlaps a's fd00::1/128, first at e:5",
    ],
  )
})

test('parseEndpoints refuses other keys and more than one document', () => {
  assert.deepEqual(faultsOf('endpoint: []\n'), [
    '1:1: unknown field endpoint; did you mean "endpoints"?',
  ])
  assert.deepEqual(faultsOf('endpoints: []\n---\nendpoints: []\n'), [
    '3:1: found a second document (---), expected one',
  ])
  assert.deepEqual(faultsOf('endpoints: 5\n'), ['1:12: endpoints: found 5, expected a list'])
})

const prefix = fc
  .tuple(fc.constantFrom(0, 16, 32, 64, 128), fc.constantFrom(0, 128), fc.constantFrom(8, 10, 16))
  .map(([a, b, length]): Prefix => {
    const octets = Uint8Array.of(a, b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    return truncatePrefix({ family: 4, octets, length: 32 }, length)
  })

test('overlapFaults finds a fault exactly when two endpoints share an address', () => {
  const found = { clean: 0, overlapping: 0 }
  fc.assert(
    fc.property(fc.array(fc.array(prefix, { maxLength: 2 }), { maxLength: 4 }), (lists) => {
      const endpoints = lists.map((addresses, i): EndpointRecord => {
        const position = { file: 'e', line: i + 1, column: 1 }
        const addressPositions = addresses.map(() => position)
        const hook = { kind: 'none' } as const
        return {
          name: `e${i}`,
          addresses,
          addressPositions,
          labels: [],
          hook,
          audit: false,
          position,
        }
      })
      const share = (a: Prefix, b: Prefix): boolean => containsPrefix(a, b) || containsPrefix(b, a)
      const overlap = lists.some((one, i) =>
        lists.slice(i + 1).some((other) => one.some((a) => other.some((b) => share(a, b)))),
      )
      found[overlap ? 'overlapping' : 'clean']++
      assert.equal(overlapFaults(endpoints).length > 0, overlap)
    }),
    { numRuns: 2_000 },
  )
  assert.ok(found.clean > 100 && found.overlapping > 100, JSON.stringify(found))
})

test('parseEndpoints never throws on mutated files', () => {
  const example = readFileSync('config/endpoints.yaml', 'utf8').replaceAll('  # ', '  ')
  fc.assert(
    fc.property(
      fc.nat({ max: example.length }),
      fc.string({ unit: 'binary', maxLength: 4 }),
      (at, noise) => {
        faultsOf(example.slice(0, at) + noise + example.slice(at + noise.length))
      },
    ),
    { numRuns: 1_000 },
  )
})
