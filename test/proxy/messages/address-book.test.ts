// Addresses in the texts that sockets use.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AddressBook, isAnswerable } from '../../../src/proxy/messages/address-book.ts'

test('AddressBook finds broadcast, multicast and unspecified addresses, and keeps zones', () => {
  const book = new AddressBook()
  const rows = [
    ['192.0.2.1', true],
    ['223.255.255.255', true],
    ['224.0.0.1', false],
    ['239.1.1.1', false],
    ['255.255.255.255', false],
    ['0.0.0.0', false],
    ['240.0.0.1', true],
    ['2001:db8::1', true],
    ['::1', true],
    ['::', false],
    ['ff02::1', false],
    ['fe80::1%eth0', true],
  ] as const
  for (const [text, unicast] of rows) {
    const peer = book.read(text)
    assert.equal(peer?.unicast, unicast, text)
    assert.equal(peer && book.write(peer.family, peer.octets, 0), text)
    assert.equal(book.read(text), peer, 'the second read finds the same peer')
    assert.equal(peer && isAnswerable(peer, 53), unicast)
    assert.equal(peer && isAnswerable(peer, 0), false, 'port 0')
  }
  assert.equal(book.read('no address'), undefined)
})
