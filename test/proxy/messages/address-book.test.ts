// Clients with the same hash, and what the table remembers.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAddress } from '../../../src/core/ip.ts'
import { AddressBook } from '../../../src/proxy/messages/address-book.ts'

test('AddressBook gives one object per client, and tells families and addresses apart', () => {
  const book = new AddressBook()
  const texts = ['192.0.2.1', '192.0.2.2', '2001:db8::1', '::', '0.0.0.0']
  for (let round = 0; round < 2; round++) {
    for (const text of texts) {
      const { family, octets } = parseAddress(text) ?? assert.fail(text)
      const row = Uint8Array.of(9, 9, ...octets)
      const peer = book.at(family, row, 2)
      assert.deepEqual([peer.family, peer.text], [family, text])
      assert.deepEqual(peer.octets, octets)
      assert.equal(book.at(family, row, 2), peer)
      row.fill(7)
      assert.deepEqual(peer.octets, octets, 'the octets are a copy')
    }
  }
})

test('AddressBook gives the right address when more clients come than it remembers', () => {
  const book = new AddressBook()
  const octets = new Uint8Array(16)
  for (let i = 0; i < 20_000; i++) {
    octets.set([10, i >> 16, (i >> 8) & 255, i & 255])
    assert.equal(book.at(4, octets, 0).text, `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
  }
})
