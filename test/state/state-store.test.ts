import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryDisk } from '../support/models/memory-disk.ts'
import {
  ALL,
  DOCUMENT,
  mkPair,
  NUMBER,
  pairsOf,
  StateNode,
  textOfPair,
  writeAll,
  writeImage,
} from '../support/nodes/state-files.ts'

test('StateStore reads from journal and image what was written', async () => {
  for (const how of ['journal', 'image'] as const) {
    const [node, disk] = [new StateNode(), new MemoryDisk()]
    const store = node.store(disk)
    if (how === 'image') await writeImage(disk, store.beginImage())
    else writeAll(store)
    store.flush()
    await disk.settle()
    const { state, passedOver } = node.read(disk)
    assert.deepEqual(passedOver, [], how)
    assert.deepEqual(state?.numbers, [NUMBER], how)
    assert.deepEqual([...state.sourceFiles], [['p.yaml', 'kind: é\n']], how)
    assert.deepEqual([...state.endpoints], [['shop-1', '{"id":7}']], how)
    assert.deepEqual(pairsOf(node.read(disk)), ALL, how)
    assert.deepEqual([state.isThisBoot, state.age], [true, 0], how)
  }
})

test('StateStore uses the last record about a key', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  writeAll(store)
  store.until(1, 900)
  store.gone(2)
  store.pair(mkPair(3, 33))
  store.document({ ...DOCUMENT, text: undefined })
  store.numbers([{ ...NUMBER, labels: ['other'] }])
  store.flush()
  await disk.settle()
  const read = node.read(disk)
  assert.deepEqual(pairsOf(read), [
    [textOfPair(mkPair(1, 1)), 900],
    [textOfPair(mkPair(3, 33)), 500],
  ])
  assert.deepEqual(read.state?.numbers, [{ ...NUMBER, labels: ['other'] }])
  assert.equal(read.state.sourceFiles.size, 0)
})

test('StateStore has numbers on disk before it returns, and other records after a flush', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  store.pair(mkPair(1, 1))
  store.numbers([NUMBER])
  assert.deepEqual(node.read(disk).state?.numbers, [NUMBER])
  assert.deepEqual(pairsOf(node.read(disk)), [])
  store.flush()
  store.numbers([{ ...NUMBER, id: NUMBER.id + 1 }])
  assert.equal(node.read(disk).state?.numbers.length, 2, 'before a running write')
  await disk.settle()
  assert.equal(pairsOf(node.read(disk)).length, 1)
})

test('StateStore keeps an image and the one before with all journals since, and removes older files', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  writeAll(store)
  const names = (): readonly string[] => disk.names().toSorted()
  for (let round = 0; round < 3; round++) await writeImage(disk, store.beginImage())
  assert.deepEqual(names(), ['checkpoint.3', 'checkpoint.4', 'journal.3', 'journal.4'])
  assert.equal(store.use.generation, 4)
  const abandoned = store.beginImage()
  abandoned?.pair(mkPair(9, 9))
  abandoned?.abandon()
  await disk.settle()
  assert.deepEqual(names(), ['checkpoint.3', 'checkpoint.4', 'journal.3', 'journal.4', 'journal.5'])
  assert.deepEqual(pairsOf(node.read(disk)), ALL)
})

test('StateStore makes an image valid only with the changes during its write', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  writeAll(store)
  store.flush()
  await disk.settle()
  const image = store.beginImage()
  assert.equal(store.beginImage(), undefined, 'one at a time')
  image?.pair(mkPair(1, 1))
  store.gone(1)
  store.pair(mkPair(2, 22))
  image?.pair(mkPair(2, 22))
  const expected = [
    [textOfPair(mkPair(2, 22)), 500],
    [textOfPair(mkPair(3, 3)), 500],
  ]
  image?.pair(mkPair(3, 3))
  image?.end()
  await disk.settle()
  const read = node.read(disk)
  assert.equal(read.image, 2)
  assert.deepEqual(pairsOf(read), expected, 'without a flush of the journal')
})

test('StateStore continues in a new journal where the one before ends, with its waiting records', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  store.pair(mkPair(1, 1))
  store.flush()
  store.pair(mkPair(2, 2))
  store.beginImage()
  store.until(1, 700)
  store.until(2, 800)
  store.flush()
  await disk.settle()
  assert.deepEqual(pairsOf(node.read(disk)), [
    [textOfPair(mkPair(1, 1)), 700],
    [textOfPair(mkPair(2, 2)), 800],
  ])
})

test('StateStore wants an image at the start, after a journal larger than the last one, and after a fault', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  assert.equal(store.wantsImage, true, 'none was written')
  const image = store.beginImage()
  assert.equal(store.wantsImage, false, 'one is being written')
  await writeImage(disk, image)
  assert.equal(store.wantsImage, false)
  const big = 'x'.repeat(2 ** 20)
  for (let i = 0; i < 4; i++) {
    assert.equal(store.wantsImage, false, `${i} MiB`)
    store.document({ ...DOCUMENT, text: big })
    store.flush()
    await disk.settle()
  }
  assert.equal(store.wantsImage, true, 'more than 4 MiB')
  await writeImage(disk, store.beginImage())
  assert.equal(store.wantsImage, false)
  disk.upset({ after: 0, kind: 'EIO', times: 1 })
  store.numbers([NUMBER])
  assert.equal(store.wantsImage, false, 'not at once')
  node.clock.advance(1000)
  assert.equal(store.wantsImage, true)
  await writeImage(disk, store.beginImage())
  assert.equal(store.wantsImage, false)
})

test('StateStore writes any number of identities into an image at once', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  const numbers = Array.from({ length: 50_000 }, (_, i) => ({ id: i, labels: ['x'.repeat(60)] }))
  const image = store.beginImage()
  image?.numbers(numbers)
  image?.end()
  assert.ok(disk.get('checkpoint.1.new').length > 3_000_000, 'records without room do not wait')
  await disk.settle()
  const found = node.read(disk).state?.numbers ?? []
  assert.deepEqual(new Set(found.map(({ id }) => id)), new Set(numbers.map(({ id }) => id)))
})

test('StateStore syncs the journal within a second of a flush, and all when it closes', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  writeAll(store)
  store.flush()
  await disk.settle()
  const unsynced = (): number => {
    const [file] = disk.files.values()
    return (file?.octets.length ?? 0) - (file?.synced ?? 0)
  }
  assert.ok(unsynced() > 0)
  node.clock.advance(1000)
  await disk.settle()
  assert.equal(unsynced(), 0)
  store.pair(mkPair(4, 4))
  const closed = store.close()
  await disk.settle()
  await closed
  assert.equal(unsynced(), 0)
  assert.equal(pairsOf(node.read(disk)).length, 4)
  store.numbers([NUMBER])
  store.flush()
  assert.equal(store.beginImage(), undefined, 'after its end')
})

test('StateStore of the next process continues after the files that it found', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const first = node.store(disk)
  await writeImage(disk, first.beginImage())
  first.beginImage()?.pair(mkPair(4, 4))
  await disk.settle()
  const second = node.store(disk)
  second.pair(mkPair(1, 77))
  second.until(2, 900)
  second.gone(3)
  second.flush()
  await disk.settle()
  const read = node.read(disk)
  assert.deepEqual(pairsOf(read), [...ALL, [textOfPair(mkPair(1, 77)), 500]], 'rows of its own')
  assert.deepEqual(
    disk.names().filter((name) => name.endsWith('.new')),
    [],
    'an unfinished image is removed',
  )
})

test('StateStore reports its state: generation, octets, age', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  assert.deepEqual(
    [store.use.generation, store.use.imageOctets, store.use.journalOctets, store.use.age],
    [0, 0, 0, 0],
  )
  await writeImage(disk, store.beginImage())
  node.clock.advance(5000)
  const { generation, imageOctets, journalOctets, age } = store.use
  assert.deepEqual([generation, age], [1, 5])
  assert.equal(imageOctets, disk.get('checkpoint.1').length)
  assert.equal(journalOctets, disk.get('journal.1').length)
})
