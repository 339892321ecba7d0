import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Message } from '../../../../src/datapath/nftables/netlink/message.ts'
import { BODY, Reader } from '../../../../src/datapath/nftables/netlink/reader.ts'

test('Message writes what Reader reads: numbers, texts, octets and nests, also when its buffer grows', () => {
  const message = new Message(16)
  message.beginBatch()
  const at = message.begin(12, 0)
  message.u8(1, 7)
  message.u16(2, 0x1234)
  message.u32(3, 0xdeadbeef)
  message.u64(4, 2 ** 40 + 5)
  message.text(5, 'name')
  const nest = message.open(6)
  message.bytes(1, Uint8Array.of(1, 2, 3))
  message.close(nest)
  message.end()
  message.endBatch(at)
  const reader = new Reader(message.octets)
  const types: number[] = []
  const flags: number[] = []
  reader.messages(message.size, (type, flag, from, end) => {
    types.push(type)
    flags.push(flag)
    if (type !== ((10 << 8) | 12)) return
    const found = (type_: number): number => reader.find(from + BODY, end, type_)
    assert.equal(reader.octets[found(1)], 7)
    assert.equal(reader.u16(found(2)), 0x1234)
    assert.equal(reader.u32(found(3)), 0xdeadbeef)
    assert.equal(reader.u64(found(4)), 2 ** 40 + 5)
    assert.equal(reader.text(found(5), found(5) + 5), 'name')
    const inner = reader.find(found(6), found(6) + 8, 1)
    assert.deepEqual([...reader.octets.subarray(inner, inner + 3)], [1, 2, 3])
    assert.equal(found(9), -1)
  })
  assert.deepEqual(types, [16, (10 << 8) | 12, 17], 'begin, message, end')
  assert.deepEqual(flags, [1, 5, 1], 'the last message asks to be acknowledged')
  assert.equal(message.sequence, 3)
})

test('Reader stops at a cut message or attribute', () => {
  const message = new Message()
  message.begin(9, 0)
  message.u32(1, 1)
  message.end()
  const reader = new Reader(message.octets)
  let seen = 0
  reader.messages(message.size - 1, () => seen++)
  assert.equal(seen, 0)
  reader.attributes(BODY, message.size - 1, () => seen++)
  assert.equal(seen, 0)
  reader.attributes(BODY, message.size, () => seen++)
  assert.equal(seen, 1)
})
