// Which addresses lead to a machine because one of its interfaces has an address.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leadingHere, NodeAddresses } from '../../src/config/node-addresses.ts'
import { formatAddress } from '../../src/core/ip.ts'

const ROWS: readonly (readonly [
  own: string,
  length: number,
  broadcast: string,
  expected: readonly string[],
  why: string,
])[] = [
  [
    '10.98.0.1',
    24,
    '10.98.0.255',
    ['10.98.0.1', '10.98.0.0', '10.98.0.255', '10.98.0.255'],
    'usual',
  ],
  [
    '10.98.0.1',
    24,
    '10.98.255.255',
    ['10.98.0.1', '10.98.0.0', '10.98.0.255', '10.98.255.255'],
    'a broadcast address that was set',
  ],
  [
    '10.98.7.9',
    12,
    '',
    ['10.98.7.9', '10.96.0.0', '10.111.255.255'],
    'an address without one that was set',
  ],
  ['10.98.0.1', 31, '', ['10.98.0.1'], 'a link between two machines (RFC 3021)'],
  ['203.0.113.9', 32, '', ['203.0.113.9'], 'a single address'],
  ['127.0.0.1', 8, '', ['127.0.0.1'], 'loopback is guarded as a whole'],
  [
    '2001:db8:9::1',
    64,
    '',
    ['2001:db8:9::1', '2001:db8:9::'],
    'the anycast address of the routers',
  ],
  ['2001:db8:9::1', 127, '', ['2001:db8:9::1'], 'a link between two routers (RFC 6164)'],
  ['fe80::1', 64, '', ['fe80::1', 'fe80::'], 'link-local'],
  ['10.98.0.1%eth0', 24, '', [], 'text that is no address'],
]

test('leadingHere returns broadcast and anycast addresses with the own one', () => {
  for (const [own, length, broadcast, expected, why] of ROWS) {
    const found = leadingHere(own, length, broadcast)
    assert.deepEqual(
      found.map(({ family, octets }) => formatAddress(family, octets)),
      expected,
      why,
    )
    for (const { family, length: full } of found) assert.equal(full, family === 4 ? 32 : 128)
  }
})

test('NodeAddresses looks again after a change, and after a change that it could have missed', () => {
  let list: (string | number)[] = ['192.0.2.1', 32, '']
  let isChanged = 0
  const node = new NodeAddresses({
    ifAddresses: () => list,
    addressSocket: () => 3,
    addressesChanged: () => isChanged,
    closeFd: () => 0,
  })
  const texts = (all = node.known): readonly string[] =>
    all.map(({ family, octets }) => formatAddress(family, octets))
  list = ['192.0.2.1', 32, '', '192.0.2.2', 32, '']
  assert.equal(node.look(), undefined, 'no message of the kernel')
  isChanged = 1
  assert.deepEqual(texts(node.look()), ['192.0.2.1', '192.0.2.2'])
  assert.equal(node.look(), undefined, 'a message without a difference')
  list = []
  assert.deepEqual(texts(node.look()), [])
})
