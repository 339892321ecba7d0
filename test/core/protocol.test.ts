import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ANY_PROTOCOL,
  EVERYTHING,
  formatPortRange,
  formatProtocol,
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

test('formatProtocol knows each protocol that has ports by name', () => {
  assert.deepEqual(PORT_PROTOCOLS.map(formatProtocol), ['TCP', 'UDP', 'SCTP'])
  assert.equal(formatProtocol(ANY_PROTOCOL), 'ANY')
  assert.deepEqual(PORT_PROTOCOLS, [6, 17, 132], 'numbers of IANA, which the kernel compares')
})
