// The daemon reads the environment of systemd, and removes it for the programs that it starts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnavailableError } from '../../src/core/errors.ts'
import { takePassedSockets } from '../../src/systemd/activation.ts'
import { takeSupervisor } from '../../src/systemd/notify.ts'

test('takeSupervisor reads the socket for notices and the interval of the watchdog', () => {
  const rows: readonly (readonly [Record<string, string>, unknown, string])[] = [
    [{}, undefined, 'nobody'],
    [{ NOTIFY_SOCKET: '/run/n' }, { socket: '/run/n', watchdogMs: 0 }, 'no watchdog'],
    [
      { NOTIFY_SOCKET: '@n', WATCHDOG_USEC: '20000000' },
      { socket: '@n', watchdogMs: 20_000 },
      'any process',
    ],
    [
      { NOTIFY_SOCKET: '@n', WATCHDOG_USEC: '20000000', WATCHDOG_PID: '7' },
      { socket: '@n', watchdogMs: 20_000 },
      'this process',
    ],
    [
      { NOTIFY_SOCKET: '@n', WATCHDOG_USEC: '20000000', WATCHDOG_PID: '8' },
      { socket: '@n', watchdogMs: 0 },
      'another process',
    ],
    [{ NOTIFY_SOCKET: '@n', WATCHDOG_USEC: '-1' }, { socket: '@n', watchdogMs: 0 }, 'no number'],
    [{ NOTIFY_SOCKET: 'relative' }, undefined, 'neither a path nor an abstract name'],
    [{ NOTIFY_SOCKET: 'vsock:2:1' }, undefined, 'another kind of socket'],
  ]
  for (const [environment, expected, reason] of rows) {
    const given = { ...environment, PATH: '/bin' }
    assert.deepEqual(takeSupervisor(given, 7), expected, reason)
    assert.deepEqual(Object.keys(given), ['PATH'], reason)
  }
})

test('takePassedSockets takes no sockets for another process', () => {
  const rows: readonly (readonly [Record<string, string>, string])[] = [
    [{}, 'nothing passed'],
    [{ LISTEN_PID: '8', LISTEN_FDS: '2' }, 'another process'],
    [{ LISTEN_FDS: '2' }, 'no process named'],
    [{ LISTEN_PID: '7', LISTEN_FDS: '0', LISTEN_FDNAMES: '' }, 'none'],
  ]
  for (const [environment, reason] of rows) {
    const given = { ...environment }
    assert.deepEqual(takePassedSockets(given, 7), [], reason)
    assert.deepEqual(given, {}, reason)
  }
  assert.throws(() => takePassedSockets({ LISTEN_PID: '7', LISTEN_FDS: 'x' }, 7), UnavailableError)
})
