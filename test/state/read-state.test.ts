import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import {
  decodeHeader,
  encodeHeader,
  FRAME_HEAD_OCTETS,
  HEADER_OCTETS,
  sealFrame,
} from '../../src/state/files/file-format.ts'
import { MemoryDisk } from '../support/models/memory-disk.ts'
import {
  mkPair,
  pairsOf,
  rowOf,
  said,
  StateNode,
  twoGenerations,
} from '../support/nodes/state-files.ts'

function flip(octets: Uint8Array, at: number): Uint8Array {
  const flipped = Uint8Array.from(octets)
  flipped[at] = (flipped[at] ?? 0) ^ 0x10
  return flipped
}

test('readState of an empty or missing folder is empty and skips nothing', () => {
  const { state, passedOver, generations } = new StateNode().read(new MemoryDisk())
  assert.deepEqual([state, passedOver, generations.next], [undefined, [], 1])
})

test('readState reads the generation before when the newest image is bad, and reports the reason', async () => {
  const node = new StateNode()
  const all = [1, 2, 3].map((serial) => rowOf(serial))
  const rows: readonly (readonly [
    name: string,
    change: (octets: Uint8Array) => Uint8Array,
    passed: RegExp,
  ])[] = [
    [
      'empty',
      () => new Uint8Array(0),
      /^checkpoint\.2:0: found 0 octets, expected a header of 64$/,
    ],
    ['foreign', () => new Uint8Array(500).fill(7), /^checkpoint\.2:0: expected the mark/],
    ['header', (octets) => flip(octets, 30), /:0: the checksum of the header/],
    ['frame head', (octets) => flip(octets, 66), /:64: the checksum of a frame's head is wrong/],
    ['record', (octets) => flip(octets, 100), /:64: the checksum of a frame is wrong/],
    ['one octet less', (octets) => octets.slice(0, -1), /:64: found \d+ octets of a frame, expec/],
    ['one octet more', (octets) => Uint8Array.from([...octets, 1]), /:\d+: found 1 octets, expe/],
    ['no frames', (octets) => octets.slice(0, 64), /:64: expected its end/],
  ]
  for (const [name, change, passed] of rows) {
    const disk = await twoGenerations(node)
    disk.put('checkpoint.2', change(disk.get('checkpoint.2')))
    const read = node.read(disk)
    assert.equal(read.image, 1, name)
    assert.deepEqual(pairsOf(read), all, name)
    assert.equal(read.passedOver.length, 1, name)
    assert.match(said(read.passedOver[0]), passed, name)
  }
})

test('readState returns the records before the first fault of a journal, whatever octet is cut or changed', async () => {
  const node = new StateNode()
  const disk = new MemoryDisk()
  const store = node.store(disk)
  for (let row = 1; row <= 4; row++) {
    store.pair(mkPair(row, row))
    store.flush()
    await disk.settle()
  }
  const whole = disk.get('journal.1')
  for (let at = 0; at < whole.length; at++) {
    disk.put('journal.1', whole.slice(0, at))
    const cut = node.read(disk)
    const serials = pairsOf(cut).map(([text]) => text)
    assert.deepEqual(
      serials,
      [1, 2, 3, 4].slice(0, serials.length).map((serial) => rowOf(serial)[0]),
      `cut at ${at}`,
    )
    assert.ok(cut.passedOver.every(({ isNormal, file }) => isNormal || file === '.'))
    disk.put('journal.1', flip(whole, at))
    const flipped = node.read(disk)
    const texts = pairsOf(flipped).map(([text]) => text)
    assert.ok(texts.length < 4, `an octet changed at ${at} is noticed`)
    assert.deepEqual(
      texts,
      [1, 2, 3, 4].slice(0, texts.length).map((each) => rowOf(each)[0]),
    )
    assert.ok(flipped.passedOver.length > 0 && flipped.passedOver.some((each) => !each.isNormal))
  }
})

test('readState takes zeros at the end of a journal as its end, because file systems leave them after a loss of power', async () => {
  const node = new StateNode()
  const disk = await twoGenerations(node)
  disk.put('journal.2', Uint8Array.from([...disk.get('journal.2'), ...new Uint8Array(4096)]))
  const { passedOver } = node.read(disk)
  assert.deepEqual(
    passedOver.map(({ isNormal }) => isNormal),
    [true],
  )
})

test('readState uses no record about a row after a gap, because the row can belong to another pair', async () => {
  const node = new StateNode()
  const disk = new MemoryDisk()
  const store = node.store(disk)
  store.beginImage()?.end()
  await disk.settle()
  store.pair(mkPair(1, 1))
  store.flush()
  await disk.settle()
  const good = disk.get('journal.1').length
  store.gone(1)
  store.pair(mkPair(1, 11))
  store.flush()
  await disk.settle()
  store.beginImage()?.pair(mkPair(1, 11))
  store.until(1, 9999)
  store.pair(mkPair(2, 2))
  store.until(2, 777)
  store.flush()
  await disk.settle()
  disk.put('journal.1', disk.get('journal.1').slice(0, good))
  assert.deepEqual(pairsOf(node.read(disk)), [rowOf(1), rowOf(2, 777)], 'pair 1 is not prolonged')
  disk.files.delete('journal.1')
  assert.deepEqual(pairsOf(node.read(disk)), [rowOf(2, 777)])
})

test('readState changes no row of an image by its own journal when the end of the journal is missing', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  store.pair(mkPair(1, 1))
  store.flush()
  await disk.settle()
  const image = store.beginImage()
  store.until(1, 9999)
  store.flush()
  await disk.settle()
  const cut = disk.get('journal.2').length
  store.gone(1)
  store.pair(mkPair(1, 11))
  image?.pair(mkPair(1, 11))
  image?.end()
  await disk.settle()
  disk.put('journal.2', disk.get('journal.2').slice(0, cut))
  const read = node.read(disk)
  assert.equal(read.image, 2)
  assert.deepEqual(pairsOf(read), [rowOf(11)], 'not prolonged by a record about pair 1')
})

test('readState is empty if neither an image nor the start is left, and reports it', async () => {
  const node = new StateNode()
  const disk = await twoGenerations(node)
  for (const name of ['checkpoint.1', 'checkpoint.2']) disk.put(name, new Uint8Array(3))
  assert.deepEqual(pairsOf(node.read(disk)), [rowOf(2), rowOf(3)], 'from an empty start')
  disk.files.delete('journal.1')
  const { state, passedOver } = node.read(disk)
  assert.equal(state, undefined)
  assert.match(said(passedOver.at(-1)), /no good image, and the journals do not reach back/)
  const store = node.store(disk)
  store.pair(mkPair(7, 7))
  store.flush()
  await disk.settle()
  assert.deepEqual(pairsOf(node.read(disk)), [rowOf(7)], 'a process without state starts again')
})

test('readState returns at most the given number of pairs, and reports how many it left out', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const store = node.store(disk)
  for (let row = 1; row <= 50; row++) store.pair(mkPair(row, row))
  store.flush()
  await disk.settle()
  for (const pairsMax of [10, 30, 49]) {
    const read = node.read(disk, undefined, pairsMax)
    assert.equal(read.state?.pairs.count, pairsMax)
    assert.match(said(read.passedOver[0]), new RegExp(`${50 - pairsMax} pairs more than limits`))
  }
  assert.deepEqual(node.read(disk, undefined, 50).passedOver, [])
})

test('readState survives records that no version wrote, with right checksums', async () => {
  const node = new StateNode()
  const disk = new MemoryDisk()
  const store = node.store(disk)
  store.pair(mkPair(1, 1))
  store.flush()
  await disk.settle()
  const good = disk.get('journal.1')
  const rows: readonly (readonly [reason: string, record: readonly number[]])[] = [
    ['an unknown kind', [9, 0, 0, 0, 0, 0, 0, 0]],
    ['a record that ends early', [1, 4, 3, 0, 1, 0, 0, 0]],
    ['row 0', [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
    ['a row beyond every bound', [3, 0, 0, 0, 255, 255, 255, 255]],
    ['labels without end', [4, 0, 255, 255, 1, 0, 0, 0]],
    ['a label longer than the frame', [4, 0, 1, 0, 1, 0, 0, 0, 255, 255]],
    ['a text of 4 GiB', [5, 1, 1, 0, 0, 0, 0, 0, 255, 255, 255, 255]],
    ['a document of an unknown kind', [5, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
    ['a family 5', pairOctets(5, [1, 97, 0])],
    ['a name without an end', pairOctets(4, [1, 97, 1])],
    ['a label of 64 octets', pairOctets(4, [64, ...new Uint8Array(64).fill(97), 0])],
    ['a name with octets behind its end', pairOctets(4, [0, 0])],
    ['no name', pairOctets(4, [])],
  ]
  for (const [reason, record] of rows) {
    disk.put('journal.1', withFrame(good, record))
    const read = node.read(disk)
    assert.deepEqual(pairsOf(read), [rowOf(1)], reason)
    assert.equal(read.passedOver.length, 1, reason)
    assert.equal(read.passedOver[0]?.offset, good.length + FRAME_HEAD_OCTETS, reason)
  }
})

function pairOctets(family: number, name: readonly number[]): readonly number[] {
  const numbers = [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  return [1, family, name.length, 0, ...numbers, 10, 0, 0, 1, ...name]
}

function withFrame(file: Uint8Array, record: readonly number[]): Uint8Array {
  const decoded = decodeHeader(file)
  if (decoded.kind === 'bad') throw new Error(decoded.reason)
  assert.equal(decoded.seed, crc32(encodeHeader(decoded.header).subarray(0, HEADER_OCTETS - 4)))
  const frame = new Uint8Array(FRAME_HEAD_OCTETS + record.length)
  frame.set(record, FRAME_HEAD_OCTETS)
  sealFrame(frame, decoded.header.begun, decoded.seed)
  return Uint8Array.from([...file, ...frame])
}
