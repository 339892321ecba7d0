import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryDisk } from '../support/models/memory-disk.ts'
import {
  ALL,
  DOCUMENT,
  ENDPOINT,
  mkPair,
  NUMBER,
  pairsOf,
  rowOf,
  StateNode,
  writeAll,
  writeImage,
} from '../support/nodes/state-files.ts'

test('StateStore counts what the disk refuses, reports each cause once and continues when the disk accepts writes', async () => {
  const rows = [
    ['ENOSPC', 'no-space'],
    ['EROFS', 'read-only'],
    ['EIO', 'io-error'],
    ['short', 'short-write'],
  ] as const
  for (const [kind, cause] of rows) {
    const [node, disk] = [new StateNode(), new MemoryDisk()]
    const store = node.store(disk)
    await writeImage(disk, store.beginImage())
    disk.upset({ after: 0, kind })
    for (let round = 0; round < 6; round++) {
      store.numbers([NUMBER])
      store.pair(mkPair(4, 4))
      store.flush()
      await disk.settle()
      node.clock.advance(10_000)
      store.beginImage()?.end()
      await disk.settle()
      node.clock.advance(10_000)
    }
    assert.ok(store.use.faults[cause] > 1, kind)
    assert.equal(store.use.isFailing, true, kind)
    assert.equal(node.faults.filter((fault) => fault.cause === cause).length, 1, kind)
    assert.deepEqual(pairsOf(node.read(disk)), ALL, kind)
    disk.upset(undefined)
    node.clock.advance(60_000)
    assert.equal(store.wantsImage, true, kind)
    await writeImage(disk, store.beginImage())
    assert.equal(store.wantsImage, false, kind)
    assert.equal(store.use.isFailing, false, kind)
    store.pair(mkPair(4, 4))
    store.flush()
    await disk.settle()
    assert.equal(pairsOf(node.read(disk)).length, 4, kind)
    disk.upset({ after: 0, kind, times: 1 })
    store.numbers([NUMBER])
    assert.equal(node.faults.filter((each) => each.cause === cause).length, 2, 'reported again')
  }
})

test('StateStore waits for the disk by isFull, and ends a journal rather than grow without bound', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  const write = (): void => store.pair(mkPair(1, 1))
  for (let i = 0; i < 100_000 && !store.isFull; i++) write()
  assert.equal(store.isFull, true)
  await disk.settle()
  assert.equal(store.isFull, false)
  const text = 'x'.repeat(20 * 2 ** 20)
  store.document({ ...DOCUMENT, text })
  store.document({ ...ENDPOINT, text })
  assert.equal(node.faults.length, 0, 'the second write waits behind the first')
  store.document({ ...ENDPOINT, text })
  assert.deepEqual(
    node.faults.map(({ cause }) => cause),
    ['overflow'],
  )
  await disk.settle()
  assert.notEqual(node.read(disk).state, undefined)
})

test('StateStore leaves out a record that is too long for a frame, and counts it', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  store.document({ ...DOCUMENT, text: 'x'.repeat(33 * 2 ** 20) })
  store.numbers([{ id: NUMBER.id, labels: ['x'.repeat(70_000)] }, NUMBER])
  assert.equal(store.use.faults['too-large'], 2)
  writeAll(store)
  store.flush()
  await disk.settle()
  assert.deepEqual(pairsOf(node.read(disk)), ALL)
})

test('StateStore lets no record after a failed write change an earlier pair', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  store.pair(mkPair(1, 1))
  store.flush()
  await disk.settle()
  disk.upset({ after: 0, kind: 'EIO', times: 1 })
  store.gone(1)
  store.pair(mkPair(1, 11))
  store.flush()
  await disk.settle()
  node.clock.advance(1000)
  const image = store.beginImage()
  assert.ok(image !== undefined)
  store.until(1, 9999)
  store.flush()
  await disk.settle()
  assert.deepEqual(pairsOf(node.read(disk)), ALL.slice(0, 1), 'the time belongs to pair 11')
  image.pair(mkPair(1, 11, 9999))
  image.end()
  await disk.settle()
  assert.deepEqual(pairsOf(node.read(disk)), [rowOf(11, 9999)])
})

test('StateStore loses at a loss of power no valid image, and nothing older than a second', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  await writeImage(disk, store.beginImage())
  store.pair(mkPair(4, 4))
  assert.deepEqual(pairsOf(node.read(disk.withoutPower(() => 0))), ALL)
  store.flush()
  await disk.settle()
  node.clock.advance(1000)
  await disk.settle()
  assert.deepEqual(pairsOf(node.read(disk.withoutPower(() => 0))), [...ALL, rowOf(4)])
})
