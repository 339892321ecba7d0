import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { InvalidInputError } from '../../src/core/errors.ts'
import { parseConfig } from '../../src/config/load.ts'
import { isLoopback } from '../../src/core/ip.ts'

/** The faults of a text as users see them, without the name of the file. Empty for a correct text. */
function faultsOf(text: string): readonly string[] {
  try {
    parseConfig(text, 'n.yaml', isLoopback)
    return []
  } catch (error) {
    assert.ok(error instanceof InvalidInputError, String(error))
    return error.message.split('\n').map((line) => line.replace(/^n\.yaml:/, ''))
  }
}

const FAULTS: readonly (readonly [why: string, text: string, faults: readonly string[]])[] = [
  ['a typo in a key', 'upstraems: {}\n', ['1:1: unknown key upstraems; did you mean "upstreams"?']],
  [
    'a typo far inside',
    'dns:\n  hold:\n    on_limit: drop\n',
    ['3:5: unknown key dns.hold.on_limit; did you mean "on-limit"?'],
  ],
  [
    'pods of other nodes, without those of this node',
    'kubernetes: { peers: watch, collections: [namespaces] }\n',
    ['1:22: kubernetes.peers: found watch, which needs pods among collections'],
  ],
  [
    'a share that is none',
    'kubernetes: { mass-removal: { share: 0.2 } }\n',
    [
      '1:38: kubernetes.mass-removal.share: found 0.2, expected a share from 1% to 100%, such as 20%',
    ],
  ],
  [
    'a lease that no node could renew in time',
    'kubernetes: { events: { lease: 10ms } }\n',
    [
      '1:32: kubernetes.events.lease: found "10ms", expected a duration: a whole number and ms, s, m, h or d, such as 30s, at least 1s, at most 1h',
    ],
  ],
  [
    'a key that is like none',
    'log: { colour: 1 }\n',
    ['1:8: unknown key log.colour, expected level or format'],
  ],
  [
    'a key in a list of mappings',
    'listeners:\n  - prot: 5\n',
    ['2:5: unknown key listeners[0].prot; did you mean "port"?'],
  ],
  [
    'every fault at once, in the order of the file',
    'log: { level: loud }\ndns: { min-ttl: 5 }\nlimits: { pairs: 0 }\n',
    [
      '1:15: log.level: found "loud", expected trace, debug, info, warn, error or fatal',
      '2:17: dns.min-ttl: found 5, expected a duration: a whole number and ms, s, m, h or d, such as 30s',
      '3:18: limits.pairs: found 0, expected a whole number from 1 to 16777216',
    ],
  ],
  ['a group without a value', 'dns:\n', ['1:1: dns: found nothing, expected a mapping']],
  ['a list for the whole', '- a\n', ['1:1: found a list, expected a mapping']],
  [
    'a text for a list',
    'policies: { paths: x }\n',
    ['1:20: policies.paths: found "x", expected a list'],
  ],
  [
    'a text for a flag',
    'audit: { node: "no" }\n',
    ['1:16: audit.node: found "no", expected true or false'],
  ],
  [
    'a pin path with a folder that bpffs refuses',
    'datapath: { kind: ebpf, ebpf: { pin-path: /sys/fs/bpf/ng.a/b } }\n',
    [
      '1:43: datapath.ebpf.pin-path: found "ng.a", expected names without a dot: bpffs takes no others',
    ],
  ],
  [
    'a path too long for the address of a socket',
    `admin:\n  socket: ${'é'.repeat(54)}\n`,
    ['2:11: admin.socket: found a path of 108 octets, expected at most 107'],
  ],
  [
    'a port out of range',
    'metrics: { port: 65536 }\n',
    ['1:18: metrics.port: found 65536, expected a whole number from 0 to 65535'],
  ],
  [
    'a cluster name with characters that it cannot have',
    'cluster-name: Prod_1\n',
    [
      '1:15: cluster-name: found "Prod_1", expected a name of at most 32 lower-case letters, digits and -',
    ],
  ],
  [
    'a name for an address',
    'metrics: { address: localhost }\n',
    ['1:21: metrics.address: found "localhost", expected an address, IPv4 or IPv6'],
  ],
  [
    'a server without port',
    'upstreams:\n  servers: [system, 8.8.8.8]\n',
    [
      '2:21: upstreams.servers[1]: found "8.8.8.8", expected system or ADDRESS:PORT, such as 9.9.9.9:53 or [2620:fe::fe]:53',
    ],
  ],
  [
    'no server at all',
    'upstreams: { servers: [] }\n',
    ['1:23: upstreams.servers: found an empty list, expected a list of at least 1'],
  ],
  [
    'host bits in a prefix',
    'dns: { protected-prefixes: [10.0.0.1/8] }\n',
    ['1:29: dns.protected-prefixes[0]: host bits must be zero: write 10.0.0.0/8, not 10.0.0.1/8'],
  ],
  [
    'a label value that is no text',
    'audit: { endpoints: [{ matchLabels: { a: 1 } }] }\n',
    ['1:42: audit.endpoints[0].matchLabels.a: found 1, expected a text'],
  ],
  [
    'a label key with a blank',
    'audit: { endpoints: [{ matchLabels: { "a b": x } }] }\n',
    [
      '1:46: audit.endpoints[0].matchLabels["a b"]: found "a b", expected a label key without blanks and =',
    ],
  ],
  [
    'operators with too few and too many values',
    'audit: { endpoints: [{ matchExpressions: [{ key: a, operator: In }, { key: b, operator: Exists, values: [x] }] }] }\n',
    [
      '1:43: audit.endpoints[0].matchExpressions[0].values: found no values, expected at least one for In',
      '1:105: audit.endpoints[0].matchExpressions[1].values: found values, expected none for Exists',
    ],
  ],
  [
    'a size below its bound',
    'flows: { max-size: 1KiB }\n',
    ['1:20: flows.max-size: found less than 1MiB'],
  ],
  [
    'faults of form and of meaning at once',
    'log: { level: loud }\nupstreams: { servers: [nine] }\n',
    [
      '1:15: log.level: found "loud", expected trace, debug, info, warn, error or fatal',
      '2:24: upstreams.servers[0]: found "nine", expected system or ADDRESS:PORT, such as 9.9.9.9:53 or [2620:fe::fe]:53',
    ],
  ],
  [
    'a duration beyond its bound',
    'dns: { hold: { limit: 2m } }\n',
    [
      '1:23: dns.hold.limit: found "2m", expected a duration: a whole number and ms, s, m, h or d, such as 30s, at least 1ms, at most 1m',
    ],
  ],
  [
    'min above max',
    'dns: { min-ttl: 2d, max-ttl: 1d }\n',
    ['1:17: dns.min-ttl: found a longer time than dns.max-ttl'],
  ],
  [
    'two equal listeners',
    'listeners:\n  - { port: 53 }\n  - { address: 127.0.0.1, port: 53 }\n  - { port: 53 }\n',
    ['4:5: listeners[2]: found the same address and port as on line 2'],
  ],
  [
    'an upstream that is our own listener',
    'upstreams: { servers: ["127.0.0.1:5300"] }\n',
    [
      "1:24: upstreams.servers: found 127.0.0.1:5300, our own listener of line 1, expected a server that isn't namegate itself",
    ],
  ],
  [
    'an upstream whose queries the listener on all addresses receives',
    'listeners: [{ port: 53 }]\nupstreams: { servers: ["127.0.0.5:53", "9.9.9.9:53"] }\n',
    [
      "2:24: upstreams.servers: found 127.0.0.5:53, our own listener of line 1, expected a server that isn't namegate itself",
    ],
  ],
  [
    'an upstream whose queries the listener on :: receives',
    'listeners: [{ address: "::", port: 53 }]\nupstreams: { servers: ["127.0.0.1:53", "[::1]:53"] }\n',
    [
      "2:24: upstreams.servers: found 127.0.0.1:53, our own listener of line 1, expected a server that isn't namegate itself",
      "2:40: upstreams.servers: found [::1]:53, our own listener of line 1, expected a server that isn't namegate itself",
    ],
  ],
  [
    'an unspecified address to ask',
    'upstreams: { servers: ["0.0.0.0:53"] }\n',
    ['1:24: upstreams.servers: found 0.0.0.0:53, expected an address that can be asked'],
  ],
  [
    'a second document',
    'log: {}\n---\nlog: {}\n',
    ['3:1: found a second document (---), expected one'],
  ],
  [
    'a page without a token or client certificates',
    'admin: { page: {} }\n',
    ['1:16: admin.page: expected token-file, or tls with client-ca'],
  ],
  [
    'a page whose token would cross a network in plain text',
    'admin: { page: { address: "192.0.2.1:9466", token-file: t } }\n',
    [
      '1:27: admin.page.address: found 192.0.2.1, which is not a loopback address: expected tls as well, which keeps the token secret',
    ],
  ],
  [
    'a page address without a port',
    'admin: { page: { address: "::1", token-file: t } }\n',
    [
      '1:27: admin.page.address: found "::1", expected ADDRESS:PORT, such as 9.9.9.9:53 or [2620:fe::fe]:53',
    ],
  ],
  [
    'a page that may write: yes',
    'admin: { page: { token-file: t, write: yes } }\n',
    ['1:40: admin.page.write: found "yes", expected true or false'],
  ],
  ['a key twice', 'log: {}\nlog: {}\n', ['2:1: found the key "log" twice, first on line 1']],
  ['no YAML', 'a: b: c\n', ['1:4: Nested mappings are not allowed in compact mappings']],
]

for (const [why, text, faults] of FAULTS) {
  test(`parseConfig refuses ${why}`, () => assert.deepEqual(faultsOf(text), faults))
}

test('parseConfig takes 0.0.0.0 beside an upstream that only IPv6 reaches', () => {
  const text = 'listeners: [{ address: 0.0.0.0, port: 53 }]\nupstreams: { servers: ["[::1]:53"] }\n'
  assert.deepEqual(faultsOf(text), [])
})

test('parseConfig throws nothing but faults for mutated files', () => {
  const lines = [
    'listeners: [{ port: 53 }]',
    'dns:',
    '  hold: { limit: 1s }',
    '  min-ttl: 5s',
    'limits: { pairs: 5 }',
    'audit: { endpoints: [{ matchLabels: { a: b } }] }',
    '- x',
    '---',
    'dns: &a [*a]',
    '? : :',
    '  __proto__: { x: 1 }',
    'upstreams: { servers: [system, 5, null, "1.1.1.1:53"] }',
  ]
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...lines), { maxLength: 6 }),
      fc.nat({ max: 200 }),
      fc.string({ maxLength: 3 }),
      (chosen, at, noise) => {
        const text = chosen.join('\n')
        faultsOf(text.slice(0, at) + noise + text.slice(at + noise.length))
      },
    ),
    { numRuns: 1_000 },
  )
})
