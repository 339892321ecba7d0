import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Guard, GUARDED_ALWAYS, GUARDED_UNLESS_SAID, UNGUARDED } from '../../src/names/guard.ts'
import { prefixOf } from '../support/nodes/node.ts'

const guard = new Guard({
  nodeAddresses: ['192.0.2.77', '2001:db8::77'].map(prefixOf),
  protectedPrefixes: ['10.0.0.0/8', '2001:db8:5::/48', '10.0.0.0/8'].map(prefixOf),
})

const ROWS: readonly (readonly [address: string, guarded: boolean, reason: string])[] = [
  ['0.0.0.0', true, 'unspecified'],
  ['0.1.2.3', true, 'this network'],
  ['127.0.0.1', true, 'loopback'],
  ['127.255.255.255', true, 'all of 127/8'],
  ['128.0.0.1', false, 'next to loopback'],
  ['169.254.169.254', true, 'metadata service, link-local'],
  ['169.253.1.1', false, 'next to link-local'],
  ['224.0.0.251', true, 'multicast'],
  ['239.255.255.255', true, 'end of multicast'],
  ['240.0.0.1', false, 'reserved but not multicast'],
  ['255.255.255.255', true, 'broadcast'],
  ['192.0.2.77', true, "the node's own"],
  ['192.0.2.78', false, 'a neighbour'],
  ['10.20.30.40', true, 'protected'],
  ['11.0.0.1', false, 'not protected'],
  ['::', true, 'unspecified'],
  ['::1', true, 'loopback'],
  ['fe80::1', true, 'link-local'],
  ['febf::1', true, 'end of fe80::/10'],
  ['fec0::1', false, 'past it'],
  ['ff02::1', true, 'multicast'],
  ['2001:db8::77', true, "the node's own"],
  ['2001:db8:5:1::1', true, 'protected'],
  ['2001:db8:6::1', false, 'not protected'],
  ['::ffff:127.0.0.1', true, 'mapped is IPv4'],
  ['64:ff9b::7f00:1', true, 'NAT64 of loopback'],
  ['64:ff9b::c000:24d', true, "NAT64 of the node's own"],
  ['64:ff9b::808:808', false, 'NAT64 of a public address'],
  ['64:ff9b:1::a00:1', true, 'local NAT64, /96 form'],
  ['64:ff9b:1:a14:1e:2800::', true, 'local NAT64, /48 form of 10.20.30.40'],
  [
    '64:ff9b:1:550a:14:1e28::',
    true,
    'local NAT64, /56 form of 10.20.30.40, which no other form guards',
  ],
  ['64:ff9b:1:5508:8:808::', false, 'local NAT64, /56 form of a public address'],
  ['64:ff9b:1:808:8:800::', false, 'local NAT64, /48 form of a public address'],
  ['64:ff9b:1::808:808', false, 'local NAT64, /96 form of a public address'],
  ['64:ff9b:1::7f:0:100:0', true, 'local NAT64, /64 form'],
  ['2002:7f00:1::', true, '6to4 of loopback'],
  ['2002:a14:1e28::1', true, '6to4 of a protected address'],
  ['2002:808:808::1', false, '6to4 of a public address'],
  ['::ffff:0:7f00:1', true, 'IPv4-translated loopback (RFC 2765 2.1)'],
  ['::ffff:0:a14:1e28', true, 'IPv4-translated protected address'],
  ['::ffff:0:808:808', false, 'IPv4-translated public address'],
  ['2001:0:a14:1e28::f7f7:f7f7', true, 'Teredo, the server is protected'],
  [
    '2001:0:808:808::f5eb:e1d7',
    true,
    'Teredo, the client is 10.20.30.40 with its bits turned (RFC 4380 4)',
  ],
  ['2001:0:808:808::f7f7:f7f7', false, 'Teredo of public addresses'],
  ['2001:1:a14:1e28::f5eb:e1d7', false, 'outside 2001::/32'],
  ['::7f00:1', true, 'IPv4-compatible loopback'],
  ['::808:808', false, 'IPv4-compatible public address'],
]

for (const [address, guarded, reason] of ROWS) {
  test(`Guard.isGuarded ${guarded ? 'guards' : 'passes'} ${address}: ${reason}`, () => {
    const { family, octets } = prefixOf(address)
    const shifted = Uint8Array.from([7, ...octets])
    assert.equal(guard.isGuarded(family, shifted, 1), guarded)
  })
}

test('Guard.levelOf lets documents open configured prefixes and link-local addresses, as written', () => {
  const rows: readonly (readonly [address: string, level: number, reason: string])[] = [
    ['11.0.0.1', UNGUARDED, 'not guarded'],
    ['10.20.30.40', GUARDED_UNLESS_SAID, 'protected by the configuration'],
    ['2001:db8:5:1::1', GUARDED_UNLESS_SAID, 'protected by the configuration'],
    ['169.254.169.254', GUARDED_UNLESS_SAID, 'link-local'],
    ['fe80::1', GUARDED_UNLESS_SAID, 'link-local'],
    ['127.0.0.1', GUARDED_ALWAYS, 'loopback'],
    ['0.0.0.0', GUARDED_ALWAYS, 'unspecified'],
    ['224.0.0.251', GUARDED_ALWAYS, 'multicast'],
    ['255.255.255.255', GUARDED_ALWAYS, 'broadcast'],
    ['::1', GUARDED_ALWAYS, 'loopback'],
    ['ff02::1', GUARDED_ALWAYS, 'multicast'],
    ['192.0.2.77', GUARDED_ALWAYS, "the node's own"],
    ['64:ff9b::a14:1e28', GUARDED_ALWAYS, 'a protected address inside NAT64'],
    ['2002:a9fe:a9fe::1', GUARDED_ALWAYS, 'a link-local address inside 6to4'],
  ]
  for (const [address, level, reason] of rows) {
    const { family, octets } = prefixOf(address)
    assert.equal(guard.levelOf(family, octets, 0), level, `${address}: ${reason}`)
  }
})
