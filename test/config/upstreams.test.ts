import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAddress } from '../../src/core/ip.ts'
import { formatSocketAddress, parseSocketAddress } from '../../src/core/socket-address.ts'
import type { ListenerConfig, UpstreamServer } from '../../src/config/config.ts'
import { resolveUpstreams } from '../../src/config/upstreams.ts'
import { isLoopback } from '../../src/core/ip.ts'

const POSITION = { file: 'u', line: 9, column: 1 }

function mkListener(address: string | undefined, port: number): ListenerConfig {
  const bound = address === undefined ? undefined : parseAddress(address)
  return {
    address: bound,
    port,
    mode: 'explicit',
    interfaces: [],
    processes: 'all',
    position: { ...POSITION, line: 2 },
  }
}

function mkServer(text: string): UpstreamServer {
  const address = parseSocketAddress(text)
  return address === undefined
    ? { kind: 'system', position: POSITION }
    : { kind: 'address', address, position: POSITION }
}

function resolve(
  servers: readonly string[],
  listener: ListenerConfig,
  system: readonly string[] = [],
): { readonly addresses: readonly string[]; readonly faults: readonly string[] } {
  const { addresses, faults } = resolveUpstreams(
    servers.map(mkServer),
    [listener],
    isLoopback,
    () => system.map((text) => parseSocketAddress(text) ?? assert.fail(text)),
  )
  return { addresses: addresses.map(formatSocketAddress), faults: faults.map((f) => f.message) }
}

test('resolveUpstreams replaces `system` by the servers of resolv.conf, each once', () => {
  const listener = mkListener('127.0.0.1', 5300)
  const system = ['192.0.2.1:53', '9.9.9.9:53']
  assert.deepEqual(resolve(['9.9.9.9:53', 'system', '[::1]:53'], listener, system), {
    addresses: ['9.9.9.9:53', '192.0.2.1:53', '[::1]:53'],
    faults: [],
  })
})

test('resolveUpstreams reads no resolv.conf that the configuration does not name', () => {
  const never = (): never => assert.fail('asked')
  resolveUpstreams([mkServer('9.9.9.9:53')], [], isLoopback, never)
})

test('resolveUpstreams refuses our own listeners, also when resolv.conf names them', () => {
  const rows: readonly (readonly [string | undefined, number, string, boolean, string])[] = [
    ['127.0.0.1', 53, '127.0.0.1:53', true, 'the same address and port'],
    ['127.0.0.1', 5300, '127.0.0.1:53', false, 'another port'],
    ['127.0.0.1', 53, '127.0.0.2:53', false, 'another address'],
    ['0.0.0.0', 53, '127.0.0.2:53', true, 'all IPv4 addresses and one of ours'],
    ['0.0.0.0', 53, '9.9.9.9:53', false, 'all IPv4 addresses and none of ours'],
    ['0.0.0.0', 53, '[::1]:53', false, 'all IPv4 addresses do not take IPv6'],
    ['::', 53, '127.0.0.1:53', true, 'all addresses take IPv4 too'],
    [undefined, 53, '[::1]:53', true, 'no address is all addresses'],
    [undefined, 53, '9.9.9.9:53', false, 'all addresses and none of ours'],
    ['::1', 53, '[::1]:53', true, 'IPv6'],
  ]
  for (const [address, port, server, own, why] of rows) {
    const listener = mkListener(address, port)
    const direct = resolve([server], listener)
    const named = resolve(['system'], listener, [server])
    assert.equal(direct.faults.length, own ? 1 : 0, why)
    assert.deepEqual(direct.addresses, own ? [] : [server], why)
    assert.equal(named.faults.length, own ? 1 : 0, why)
    if (own) {
      assert.deepEqual(named.faults, [
        `upstreams.servers: found ${server} (named by resolv.conf), our own listener of line 2, expected a server that isn't namegate itself`,
      ])
    }
  }
})

test('resolveUpstreams refuses a resolv.conf without servers', () => {
  assert.deepEqual(resolve(['system'], mkListener('::1', 53)).faults, [
    'upstreams.servers: found no server in resolv.conf, expected one',
  ])
})
