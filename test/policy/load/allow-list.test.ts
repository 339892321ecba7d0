import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatFault } from '../../../src/core/errors.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import { formatPortRange } from '../../../src/core/protocol.ts'

test('loadPolicies reads an allow-list as one policy that asks and reaches its names', () => {
  const text =
    '# names\nexample.com:443/tcp\n\n  *.cdn.example   # images\r\n**.svc.example:53/UDP\n'
  const allowListEndpoints = new Map([['app', 'shop']])
  const { policies, faults } = loadPolicies(text, 'some/web.allow', { allowListEndpoints })
  assert.deepEqual(faults, [])
  const [policy] = policies
  assert.ok(policy !== undefined && policies.length === 1)
  const { name, namespace, kind, selector, defaultDeny } = policy
  assert.deepEqual([name, namespace, kind, defaultDeny], ['web', undefined, 'AllowList', true])
  assert.deepEqual(selector.matchLabels, allowListEndpoints)
  const shown = policy.rules.map(({ peers, toPorts = [], position }) => {
    const who = peers.kind === 'any' ? [] : peers.selectors
    const names = who.map((peer) => (peer.kind === 'fqdn' ? peer.pattern.text : '?')).join()
    const ports = toPorts.flatMap((each) => each.ports.map(formatPortRange)).join(' ')
    const dns = toPorts.flatMap((each) => each.dns ?? []).map((each) => each.text)
    return `${position.line}:${position.column} ${names} ${ports} ${dns.join()}`
  })
  assert.deepEqual(shown, [
    '1:1  53/TCP 53/UDP 53/SCTP example.com,*.cdn.example,**.svc.example',
    '2:1 example.com 443/TCP ',
    '4:3 *.cdn.example TCP UDP ',
    '5:1 **.svc.example 53/UDP ',
  ])
})

const NO_ADDRESS =
  'looks like an address, and is none: an IPv4 address has four numbers from 0 to 255'
const NO_ADDRESS_6 = 'looks like an IPv6 address, and is none'
const NO_PREFIX = 'looks like several addresses: write a prefix, such as 10.0.0.0/24'

const BAD: readonly (readonly [text: string, faults: readonly string[]])[] = [
  ['a.x:0\n', ['1:5: found "0", expected a port from 1 to 65535']],
  ['ok.x\n  b..c:443\n', ['2:5: found an empty label in "b..c", expected text between two dots']],
  ['a.x:443/icmp\n', ['1:9: found "icmp", expected tcp or udp']],
  ['a.x b.x\n', ['1:4: found the character " ", expected letters, digits, - _ . or *']],
  [
    '# a.x\n',
    [
      '1:1: found no name or address, expected one a line: write none.invalid to allow nothing; to take the list out of force, delete the file from its folder, or take it out of the configuration',
    ],
  ],
  [
    'a.x\n https://git.example/a?b=1\n',
    ['2:2: found a URL, expected a name: write git.example:443/tcp'],
  ],
  [
    'ftp://u@[2001:db8::1]:2121/x\n',
    ['1:1: found a URL, expected a name: write [2001:db8::1]:2121/tcp'],
  ],
  ['https://\n', ['1:1: found a URL, expected a name']],
  // What `*.$DOMAIN` becomes without a value. In a policy, stars and a final dot are every name, as in Cilium.
  ['*.:443\n', ['1:1: found "*.", expected a name behind the dot: write * for every name']],
  ['**.\n', ['1:1: found "**.", expected a name behind the dot: write * for every name']],
  // Programs take these texts as addresses and ask DNS for none of them, so a list has no use for them as names.
  ['198.51.100.256\n', [`1:1: found "198.51.100.256", which ${NO_ADDRESS}`]],
  ['198.51.100.1.1:80\n', [`1:1: found "198.51.100.1.1", which ${NO_ADDRESS}`]],
  ['1.2.3\n', [`1:1: found "1.2.3", which ${NO_ADDRESS}`]],
  ['10.0.0.300/24\n', [`1:1: found "10.0.0.300", which ${NO_ADDRESS}`]],
  ['10.0.0.*\n', [`1:1: found "10.0.0.*", which ${NO_PREFIX}`]],
  ['10.0.0.1-20:443\n', [`1:1: found "10.0.0.1-20", which ${NO_PREFIX}`]],
  ['*.example.1\n', ['1:1: found "*.example.1", which ends in digits alone, and no name does']],
  ['2001:db8::g\n', [`1:1: found "2001:db8::g", which ${NO_ADDRESS_6}`]],
  ['[2001:db8::1::2]:443\n', [`1:2: found "2001:db8::1::2", which ${NO_ADDRESS_6}`]],
  ['10.0.0.1/8\n', ['1:1: host bits must be zero: write 10.0.0.0/8, not 10.0.0.1/8']],
]

for (const [text, expected] of BAD) {
  test(`loadPolicies refuses the allow-list ${JSON.stringify(text)}`, () => {
    const { policies, faults } = loadPolicies(text, 'f.allow')
    assert.deepEqual(
      faults.map((fault) => formatFault(fault).replace(/^f.allow:/, '')),
      expected,
    )
    assert.deepEqual(policies, [])
  })
}

test('loadPolicies reads addresses and prefixes in an allow-list as peers that are reached and never asked', () => {
  const { policies, faults } = loadPolicies('10.0.0.0/8\n[fd00::1]:53\na.x:80\n', 'f.allow')
  assert.deepEqual(faults, [])
  const [ask, ...reach] = policies[0]?.rules ?? []
  assert.deepEqual(
    ask?.toPorts?.flatMap((each) => each.dns ?? []).map((each) => each.text),
    ['a.x'],
  )
  const kinds = reach.flatMap(({ peers }) =>
    peers.kind === 'any' ? ['any'] : peers.selectors.map((each) => each.kind),
  )
  assert.deepEqual(kinds, ['cidr', 'cidr', 'fqdn'])
})

test('loadPolicies refuses an empty allow-list', () => {
  const { policies, faults } = loadPolicies('', 'f.allow')
  const message =
    'f.allow:1:1: found no name or address, expected one a line: write none.invalid to allow nothing; to take the list out of force, delete the file from its folder, or take it out of the configuration'
  assert.deepEqual([policies, faults.map(formatFault)], [[], [message]])
})

test('loadPolicies reads the line none.invalid, which an empty allow-list proposes, as a list that denies by default', () => {
  const { policies, faults } = loadPolicies('none.invalid\n', 'f.allow')
  assert.deepEqual(faults, [])
  assert.deepEqual(
    policies.map(({ defaultDeny, rules }) => [defaultDeny, rules.length]),
    [[true, 2]],
  )
})
