// The addon that passes netlink batches to the kernel, in a network namespace of this process.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { before, describe, it } from 'node:test'
import { encodeInstall } from '../../../src/datapath/nftables/rules/install.ts'
import { CREATE, Message } from '../../../src/datapath/nftables/netlink/message.ts'
import { Elements } from '../../../src/datapath/nftables/netlink/sets.ts'
import { errnoName, isBuilt, loadNetlink, loadPosix } from '../../../src/native/native.ts'
import type { NetlinkAddon } from '../../../src/native/netfilter/nftables.ts'

const isRoot = process.getuid?.() === 0
const skip = !isRoot ? 'needs root' : !isBuilt('nftables') ? 'the native part is not built' : false
const BUFFER = 1 << 20
const NEW_TABLE = 0
const DELETE_TABLE = 2

/** A batch that deletes a missing table. */
function faulty(): Message {
  const message = new Message()
  message.beginBatch()
  const at = message.begin(DELETE_TABLE, 0)
  message.text(1, 'nobody')
  message.end()
  message.endBatch(at)
  return message
}

/** Batches that make a table each. The second has a name that is too long, and a fourth was removed from the message. */
function several(): Message {
  const message = new Message()
  message.clear()
  for (const name of ['one', 'x'.repeat(300), 'three']) {
    message.nextBatch()
    const at = message.begin(NEW_TABLE, CREATE)
    message.text(1, name)
    message.end()
    message.endBatch(at)
  }
  message.dropBatch(message.nextBatch())
  return message
}

/** A batch that makes namegate's whole table. */
function whole(): Message {
  const message = new Message()
  const elements = new Elements(message)
  message.beginBatch()
  encodeInstall(message, elements, { reports: true, rejects: false })
  message.endBatch(elements.last)
  return message
}

describe('netlink addon', { skip }, () => {
  let netlink: NetlinkAddon
  const results = new Uint32Array(64)

  before(() => {
    netlink = loadNetlink()
    assert.equal(loadPosix().unshareNetwork(), 0)
  })

  it('nlRequest applies batches in order, up to the first that the kernel refuses', () => {
    const fd = netlink.nlOpen(BUFFER)
    const batches = several()
    assert.equal(batches.batches, 3)
    assert.ok(netlink.nlRequest(fd, batches.octets, batches.size, results) >= 2)
    assert.equal(results[1], 0, 'the first')
    assert.notEqual(results[3], 0, 'the second')
    const tables = execFileSync('nft', ['list', 'tables'], { encoding: 'utf8' })
    assert.equal(tables, 'table inet one\n')
    execFileSync('nft', ['flush', 'ruleset'])
    assert.equal(netlink.nlClose(fd), 0)
  })

  it('nlRequest reports each refused message, and acknowledges an applied batch', () => {
    const fd = netlink.nlOpen(BUFFER)
    assert.ok(fd >= 0)
    assert.ok(netlink.nlRoom(fd) >= BUFFER)
    const wrong = faulty()
    assert.ok(netlink.nlRequest(fd, wrong.octets, wrong.size, results) >= 1)
    assert.deepEqual([results[0], errnoName(results[1]!)], [2, 'ENOENT'])
    const right = whole()
    assert.equal(netlink.nlRequest(fd, right.octets, right.size, results), 1)
    assert.equal(results[1], 0)
    assert.equal(netlink.nlReceive(fd, new Uint8Array(64), 0), -11, 'everything was read')
    assert.equal(netlink.nlClose(fd), 0)
    assert.equal(netlink.nlRequest(fd, right.octets, right.size, results), -9, 'closed')
  })

  it('nlSubmit lets a thread apply a copy of one batch at a time, and wakes the loop', async () => {
    const fd = netlink.nlOpen(BUFFER)
    let woken = 0
    let wake = (): void => undefined
    const worker = netlink.nlWorker(fd, () => {
      woken++
      wake()
    })
    assert.ok(typeof worker === 'object')
    assert.equal(netlink.nlTake(worker, results, 0), -11, 'nothing was submitted')
    const alive = setInterval(() => undefined, 1000)
    for (let i = 1; i <= 20; i++) {
      const batch = i % 2 === 0 ? faulty() : whole()
      const done = new Promise<void>((each) => (wake = each))
      assert.equal(netlink.nlSubmit(worker, batch.octets, batch.size), 0)
      assert.equal(netlink.nlSubmit(worker, batch.octets, batch.size), -16, 'busy')
      batch.octets.fill(0xff)
      await done
      assert.equal(woken, i)
      assert.ok(netlink.nlTake(worker, results, 0) >= 1)
      assert.equal(results[1], i % 2 === 0 ? 2 : 0)
    }
    clearInterval(alive)
    assert.equal(netlink.nlEnd(worker), 0)
    netlink.nlClose(fd)
  })

  it('nlTake waits if asked, and nlEnd waits for a running batch', () => {
    const fd = netlink.nlOpen(BUFFER)
    const worker = netlink.nlWorker(fd, () => undefined)
    assert.ok(typeof worker === 'object')
    const batch = whole()
    assert.equal(netlink.nlSubmit(worker, batch.octets, batch.size), 0)
    assert.equal(netlink.nlTake(worker, results, 1), 1)
    assert.equal(netlink.nlSubmit(worker, batch.octets, batch.size), 0)
    assert.equal(netlink.nlEnd(worker), 0)
    netlink.nlClose(fd)
  })

  it('functions refuse arguments that are too short or of another kind', () => {
    const fd = netlink.nlOpen(BUFFER)
    assert.throws(() => netlink.nlRequest(fd, new Uint8Array(4), 8, results), TypeError)
    assert.throws(() => netlink.nlRequest(fd, new Uint8Array(8), 8, new Uint32Array(1)), TypeError)
    assert.throws(() => netlink.nlSubmit({}, new Uint8Array(8), 8), TypeError)
    netlink.nlClose(fd)
  })
})
