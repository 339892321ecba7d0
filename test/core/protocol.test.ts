import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ANY_PROTOCOL,
  EVERYTHING,
  formatPortRange,
  formatProtocol,
  parseProtocol,
  PORT_PROTOCOLS,
  SCTP,
  TCP,
  UDP,
  type PortRange,
} from '../../src/core/protocol.ts'

test('formatPortRange writes ports as policy authors do', () => {
  const rows: readonly (readonly [range: PortRange, text: string, why: string])[] = [
    [{ protocol: TCP, low: 443, high: 443 }, '443/TCP', 'one port'],
    [{ protocol: UDP, low: 80, high: 90 }, '80-90/UDP', 'a range'],
    [{ protocol: SCTP, low: 0, high: 65535 }, 'SCTP', 'every port of one protocol'],
    [{ protocol: TCP, low: 0, high: 0 }, '0/TCP', 'port 0 is a port'],
    [{ protocol: TCP, low: 1, high: 65535 }, '1-65535/TCP', 'all but one is a range'],
    [{ protocol: TCP, low: 0, high: 65534 }, '0-65534/TCP', 'all but one is a range'],
    [EVERYTHING, 'ANY', 'everything'],
    [{ protocol: 47, low: 0, high: 65535 }, '47', 'a protocol without a name here'],
  ]
  for (const [range, text, why] of rows) assert.equal(formatPortRange(range), text, why)
})

test('formatProtocol knows ICMP and each protocol that has ports by name', () => {
  assert.deepEqual(PORT_PROTOCOLS.map(formatProtocol), ['TCP', 'UDP', 'SCTP'])
  assert.deepEqual([1, 58, 47].map(formatProtocol), ['ICMP', 'ICMPv6', '47'])
  for (const number of [0, 1, 6, 17, 58, 132]) {
    assert.equal(parseProtocol(formatProtocol(number).toLowerCase()), number)
  }
  assert.equal(parseProtocol('gre'), undefined)
  assert.equal(formatProtocol(ANY_PROTOCOL), 'ANY')
  assert.deepEqual(PORT_PROTOCOLS, [6, 17, 132], 'numbers of IANA, which the kernel compares')
})
