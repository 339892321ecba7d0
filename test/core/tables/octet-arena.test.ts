import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OctetArena } from '../../../src/core/tables/octet-arena.ts'
import { runsOf } from '../../support/properties.ts'
import { Random } from '../../support/models/random.ts'

function read(arena: OctetArena, handle: number, length: number): Uint8Array {
  const at = arena.offsetOf(handle)
  return arena.blockOf(handle).slice(at, at + length)
}

test('OctetArena returns what was stored, through random storing and freeing', () => {
  const random = new Random(7)
  const arena = new OctetArena()
  const stored: { readonly handle: number; readonly octets: Uint8Array }[] = []
  for (let i = 0; i < runsOf(20_000); i++) {
    if (stored.length > 0 && random.below(100) < 45) {
      const [gone] = stored.splice(random.below(stored.length), 1)
      if (gone !== undefined) arena.free(gone.handle, gone.octets.length)
    } else {
      const octets = random.octets(1 + random.below(255))
      const padded = Uint8Array.from([1, 2, 3, ...octets, 9])
      stored.push({ handle: arena.store(padded, 3, octets.length), octets })
    }
  }
  for (const { handle, octets } of stored) {
    assert.notEqual(handle, 0)
    assert.deepEqual(read(arena, handle, octets.length), octets)
  }
})

test('OctetArena reuses freed cells of a size class, and grows only by whole blocks', () => {
  const arena = new OctetArena()
  const octets = new Uint8Array(255).fill(7)
  const handles = Array.from({ length: 4096 }, () => arena.store(octets, 0, 255))
  assert.equal(arena.octets, 1 << 20, '4096 cells of 256 octets are one block')
  for (const handle of handles) arena.free(handle, 255)
  const again = handles.map(() => arena.store(octets, 0, 241))
  assert.deepEqual(new Set(again), new Set(handles), '241 and 255 octets are the same class')
  arena.store(octets, 0, 16)
  assert.equal(arena.octets, 2 << 20)
})

test('OctetArena does not split a string over two blocks', () => {
  const arena = new OctetArena()
  arena.store(new Uint8Array(16), 0, 16)
  const octets = new Uint8Array(255).map((_, i) => i)
  for (let i = 0; i < 4096; i++) {
    const handle = arena.store(octets, 0, 255)
    assert.ok(arena.offsetOf(handle) + 255 <= 1 << 20)
    assert.deepEqual(read(arena, handle, 255), octets)
  }
})

test('OctetArena refuses an unknown handle', () => {
  assert.throws(() => new OctetArena().blockOf(1), /unknown handle/)
})
