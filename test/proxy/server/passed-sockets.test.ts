// Which listener gets which passed socket, and which sockets are refused with which remedy.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ListenerConfig, ListenerMode } from '../../../src/config/config.ts'
import { UnavailableError } from '../../../src/core/errors.ts'
import { parseAddress } from '../../../src/core/ip.ts'
import type { PassedSocket } from '../../../src/native/passed-socket.ts'
import { matchSockets } from '../../../src/proxy/server/passed-sockets.ts'

let descriptor = 2

function socket(
  transport: 'UDP' | 'TCP',
  address: string,
  port: number,
  more: Partial<PassedSocket> = {},
): PassedSocket {
  const parsed = parseAddress(address)
  assert.ok(parsed !== undefined)
  descriptor++
  const plain = { transparent: false, mixed: false }
  return { ...parsed, ...plain, descriptor, transport, port, ...more }
}

function listener(address: string, port: number, mode: ListenerMode = 'explicit'): ListenerConfig {
  const parsed = address === '' ? undefined : parseAddress(address)
  const prefix = parsed && { ...parsed, length: parsed.family === 4 ? 32 : 128 }
  const position = { file: 'namegate.yaml', line: 1, column: 1 }
  return { address: prefix, port, mode, interfaces: [], processes: 'all', position }
}

test('matchSockets gives each listener its sockets by address and port', () => {
  const sockets = [
    socket('TCP', '::', 53),
    socket('UDP', '127.0.0.1', 5300),
    socket('UDP', '0.0.0.0', 53),
    socket('UDP', '::', 53),
    socket('TCP', '0.0.0.0', 53),
  ]
  const given = matchSockets(sockets, [listener('', 53), listener('127.0.0.1', 5300)])
  const of = (i: number): number | undefined => sockets[i]?.descriptor
  assert.deepEqual(
    given.map(({ family, port, udp, tcp }) => [family, port, udp, tcp]),
    [
      [4, 53, of(2), of(4)],
      [6, 53, of(3), of(0)],
      [4, 5300, of(1), undefined],
    ],
  )
})

test('matchSockets gives a redirect listener without an address sockets on loopback, or on every address', () => {
  for (const [four, six] of [
    ['127.0.0.1', '::1'],
    ['0.0.0.0', '::'],
  ] as const) {
    const sockets = [socket('UDP', four, 10_053), socket('UDP', six, 10_053)]
    const given = matchSockets(sockets, [listener('', 10_053, 'redirect')])
    assert.deepEqual(
      given.map(({ family, udp }) => [family, udp]),
      [
        [4, sockets[0]?.descriptor],
        [6, sockets[1]?.descriptor],
      ],
    )
  }
})

test('matchSockets names what does not fit, with a remedy', () => {
  const explicit = [listener('127.0.0.1', 53)]
  const transparent = [listener('', 10_053, 'tproxy')]
  const rows: readonly (readonly [PassedSocket[], ListenerConfig[], RegExp, string])[] = [
    [[socket('UDP', '127.0.0.2', 53)], explicit, /UDP 127\.0\.0\.2:53: no listener/, 'address'],
    [[socket('TCP', '127.0.0.1', 54)], explicit, /TCP 127\.0\.0\.1:54: no listener/, 'port'],
    [
      [socket('UDP', '127.0.0.1', 53), socket('UDP', '127.0.0.1', 53)],
      explicit,
      /passed more than once/,
      'twice',
    ],
    [[socket('UDP', '0.0.0.0', 10_053)], transparent, /set Transparent=yes/, 'mode'],
    [
      [socket('UDP', '::', 10_053, { mixed: true, transparent: true })],
      transparent,
      /set BindIPv6Only=ipv6-only/,
      'IPv4 over IPv6',
    ],
  ]
  for (const [sockets, listeners, fault, reason] of rows) {
    assert.throws(
      () => matchSockets(sockets, listeners),
      (error) => error instanceof UnavailableError && fault.test(error.message),
      reason,
    )
  }
})
