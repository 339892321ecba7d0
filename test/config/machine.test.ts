import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownAddresses } from '../../src/config/machine.ts'

test('ownAddresses has loopback addresses and no address of another host', () => {
  const isOwn = ownAddresses()
  assert.ok(isOwn(4, Uint8Array.of(127, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
  assert.ok(!isOwn(4, Uint8Array.of(192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
})
