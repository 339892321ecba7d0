import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryDisk } from '../support/models/memory-disk.ts'
import {
  mkPair,
  pairsOf,
  rowOf,
  said,
  StateNode,
  twoGenerations,
} from '../support/nodes/state-files.ts'
import { NEXT_READERS, toVersion2 } from '../support/nodes/state-format-2.ts'

const day = 86_400

test('readState reports a file of a newer version, and the next version reads both', async () => {
  const node = new StateNode()
  const disk = await twoGenerations(node)
  const all = [1, 2, 3].map((serial) => rowOf(serial))
  assert.deepEqual(pairsOf(node.read(disk, NEXT_READERS)), all, 'up: it reads what it finds')
  for (const name of ['checkpoint.2', 'journal.2']) disk.put(name, toVersion2(disk.get(name)))
  const up = node.read(disk, NEXT_READERS)
  assert.deepEqual([up.image, up.passedOver, pairsOf(up)], [2, [], all])
  const down = node.read(disk)
  assert.deepEqual(pairsOf(down), [rowOf(1), rowOf(2)], 'down: the generation before')
  assert.deepEqual(
    down.passedOver.map(said),
    ['checkpoint.2', 'journal.2'].map(
      (name) =>
        `${name}:8: written by a newer version of namegate: format 2, this one reads up to 1`,
    ),
  )
  const store = node.store(disk, down)
  const image = store.beginImage()
  image?.pair(mkPair(1, 1))
  image?.end()
  await disk.settle()
  assert.deepEqual([node.read(disk).image, node.read(disk, NEXT_READERS).image], [3, 3])
})

test('readState uses the time since boot within one boot, and the wall clock after it', async () => {
  const rows: readonly (readonly [
    reason: string,
    change: (node: StateNode) => void,
    until: number,
    age: number,
  ])[] = [
    ['nothing happened', () => undefined, 500, 0],
    ['100 s later', (node) => node.clock.advance(100_000), 500, 100],
    ['the wall clock a day forward', (node) => void (node.wallShift = day * 1000), 500, 0],
    ['the wall clock a day back', (node) => void (node.wallShift = -day * 1000), 500, 0],
    ['a reboot in no time', (node) => node.reboot(), 400, 0],
    [
      'a reboot that took 60 s',
      (node) => {
        node.clock.advance(60_000)
        node.reboot()
      },
      340,
      60,
    ],
    [
      'a reboot 500 s ago',
      (node) => {
        node.reboot()
        node.clock.advance(500_000)
      },
      400,
      500,
    ],
    [
      'a reboot, and the wall clock a day back: the same time is left',
      (node) => {
        node.reboot()
        node.wallShift = -day * 1000
      },
      400,
      0,
    ],
    [
      'a reboot, and the wall clock a day forward: everything is over',
      (node) => {
        node.reboot()
        node.wallShift = day * 1000
      },
      400 - day,
      day,
    ],
  ]
  for (const [reason, change, until, age] of rows) {
    const [node, disk] = [new StateNode(), new MemoryDisk()]
    const store = node.store(disk)
    store.pair(mkPair(1, 1, 450))
    store.until(1, 500)
    store.flush()
    await disk.settle()
    change(node)
    const read = node.read(disk)
    assert.deepEqual(pairsOf(read), [rowOf(1, until)], reason)
    assert.equal(read.state?.age, age, reason)
    assert.equal(read.state.isThisBoot, node.bootedAt === 0, reason)
  }
})
