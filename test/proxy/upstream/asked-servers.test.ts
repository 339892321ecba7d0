// The servers that clients asked, the trusted ones, and the sockets to them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AskedLinks } from '../../../src/proxy/upstream/server-links.ts'
import { AskedServers, type AskedServer } from '../../../src/proxy/upstream/asked-servers.ts'
import { ClientColumns } from '../../../src/proxy/messages/client-columns.ts'
import { formatServer } from '../../../src/proxy/upstream/server-pool.ts'
import { prefixOf } from '../../support/nodes/node.ts'

const SERVERS = [{ family: 4, address: '192.0.2.53', port: 53 }] as const

function mkAsked(options: { trusted?: readonly string[]; untrusted?: 'refuse' | 'pass' } = {}) {
  let looks = 0
  const servers = new AskedServers({
    trusted: (options.trusted ?? []).map(prefixOf),
    servers: SERVERS,
    untrusted: options.untrusted ?? 'refuse',
    isOurs: (_family, octets, port) => {
      looks++
      return octets[0] === 10 && port === 53
    },
  })
  const columns = new ClientColumns(1)
  const ask = (address: string, port = 53): AskedServer => {
    const { family, octets } = prefixOf(address)
    columns.families[0] = family
    columns.askedAddresses.set(octets)
    columns.askedPorts[0] = port
    return servers.of(columns, 0)
  }
  return { servers, ask, looks: () => looks }
}

test('AskedServers trusts the configured trusted servers, or else the configured upstreams', () => {
  const byConfig = mkAsked()
  assert.deepEqual(byConfig.ask('192.0.2.53'), {
    kind: 'trusted',
    address: { family: 4, address: '192.0.2.53', port: 53 },
    key: '192.0.2.53:53',
  })
  assert.equal(byConfig.ask('192.0.2.54').kind, 'untrusted')
  assert.equal(byConfig.ask('192.0.2.53', 5353).key, '192.0.2.53:5353')
  const byPrefix = mkAsked({ trusted: ['9.9.9.0/24', '2001:db8::/32'], untrusted: 'pass' })
  const rows: readonly (readonly [string, string])[] = [
    ['9.9.9.9', 'trusted'],
    ['9.9.8.9', 'untrusted'],
    ['192.0.2.53', 'untrusted'],
    ['2001:db8::1', 'trusted'],
    ['2001:db9::1', 'untrusted'],
  ]
  for (const [address, kind] of rows) assert.equal(byPrefix.ask(address).kind, kind, address)
  assert.equal(byPrefix.servers.isRefused(byPrefix.ask('9.9.8.9')), false, 'passes')
  assert.equal(byConfig.servers.isRefused(byConfig.ask('9.9.8.9')), true)
  assert.equal(byConfig.servers.isRefused(byConfig.ask('192.0.2.53')), false)
})

test('AskedServers leaves queries to ourselves or to an unknown server to the pool', () => {
  const { ask } = mkAsked()
  assert.equal(ask('10.20.1.1').kind, 'pool')
  assert.equal(ask('10.20.1.1', 5353).kind, 'untrusted')
  assert.equal(ask('192.0.2.53', 0).kind, 'pool')
})

test('AskedServers looks a server up once, and stays right beyond its bound', () => {
  const { ask, looks } = mkAsked({ trusted: ['9.0.0.0/9', '2001:db8::/33'] })
  for (let round = 0; round < 3; round++) {
    for (const address of ['9.9.9.9', '2001:db8::1', '9.200.0.1']) ask(address)
  }
  assert.equal(looks(), 3)
  for (let i = 0; i < 3000; i++) {
    const four = ask(`9.${i & 255}.${i >> 8}.1`)
    assert.equal(four.address.address, `9.${i & 255}.${i >> 8}.1`)
    assert.equal(four.kind, (i & 255) < 128 ? 'trusted' : 'untrusted')
    const six = ask(`2001:db8:${(i << 4).toString(16)}::1`)
    assert.equal(six.kind, i << 4 < 0x8000 ? 'trusted' : 'untrusted')
  }
})

test('AskedLinks keeps the links used last, and closes none with a query in flight', () => {
  const { ask } = mkAsked({ untrusted: 'pass' })
  const open = new Map<number, string>()
  const links = new AskedLinks({
    servers: SERVERS,
    keyOf: formatServer,
    max: 2,
    open: (server, number) => {
      assert.ok(!open.has(number))
      open.set(number, server.address)
    },
    close: (number) => assert.ok(open.delete(number)),
  })
  assert.equal(links.begin(ask('192.0.2.53')), 0, 'a configured server keeps its own number')
  links.end(0)
  const [a, b, c, d] = ['9.0.0.1', '9.0.0.2', '9.0.0.3', '9.0.0.4'].map((server) =>
    links.begin(ask(server)),
  )
  assert.deepEqual([a, b, c, d], [1, 2, 3, 4])
  assert.equal(links.begin(ask('9.0.0.5')), -1, 'all have queries in flight')
  assert.equal(links.begin(ask('9.0.0.4')), 4, 'a link that exists')
  links.end(1)
  assert.deepEqual(
    [...open.keys()],
    [2, 3, 4],
    'the link was dropped, and its last query has ended',
  )
  assert.equal(links.begin(ask('9.0.0.5')), 1)
  assert.equal(open.get(1), '9.0.0.5')
  for (const number of [2, 3, 4, 4, 1]) links.end(number)
  assert.equal(open.size, 2)
  assert.equal(links.open, 2)
  assert.throws(() => links.end(1), /ends once/)
})
