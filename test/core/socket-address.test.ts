import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatSocketAddress, parseSocketAddress } from '../../src/core/socket-address.ts'

test('parseSocketAddress accepts bare IPv4 and IPv6 in brackets, always with a port', () => {
  for (const text of ['9.9.9.9:53', '[2620:fe::fe]:53', '127.0.0.1:65535']) {
    const address = parseSocketAddress(text)
    assert.ok(address !== undefined, text)
    assert.equal(formatSocketAddress(address), text)
  }
  const mapped = parseSocketAddress('[::ffff:1.2.3.4]:53')
  assert.equal(mapped && formatSocketAddress(mapped), '1.2.3.4:53', 'mapped IPv6 is IPv4')
})

test('parseSocketAddress refuses ambiguous texts', () => {
  const rows = [
    '9.9.9.9',
    '2620:fe::fe:53',
    '[9.9.9.9]:53',
    '9.9.9.9:0',
    '9.9.9.9:65536',
    '9.9.9.9:5x',
    '[::1]',
    ':53',
    '',
    'dns.example:53',
  ]
  for (const text of rows) assert.equal(parseSocketAddress(text), undefined, text)
})
