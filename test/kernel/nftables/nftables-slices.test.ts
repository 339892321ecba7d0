// The datapath reads back everything in force while the event loop runs. A thread has the kernel list long sets, a step reads one part of
// them, and commits and questions about the table run in between.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { identity } from '../../../src/core/ids.ts'
import type { DatapathDump } from '../../../src/datapath/entries.ts'
import { NftablesDatapath } from '../../../src/datapath/nftables/adapter.ts'
import { PrefixBatch } from '../../../src/datapath/prefix-batch.ts'
import { isBuilt, loadNetlink, loadPosix } from '../../../src/native/native.ts'
import { canUseLab } from '../../support/labs/lab.ts'

const skip = canUseLab() ?? (isBuilt('nftables') ? false : 'the native part is not built')
const COUNT = 20_000
const [LEARNED, WORLD] = [identity(2 ** 24), identity(9)]

function addresses(first: number, count: number): PrefixBatch {
  const batch = new PrefixBatch(count)
  const octets = new Uint8Array(16)
  for (let i = first; i < first + count; i++) {
    octets.set([10, (i >> 16) & 255, (i >> 8) & 255, i & 255])
    batch.add({ family: 4, octets, length: 32 }, LEARNED, WORLD)
  }
  return batch
}

function textsOf({ prefixes }: DatapathDump): readonly string[] {
  return Array.from({ length: prefixes.count }, (_, i) => prefixes.format(i)).toSorted()
}

/** Open descriptors of this process. Each listing has its own socket. */
function held(): number {
  return readdirSync('/proc/self/fd').length
}

describe('NftablesDatapath with many addresses', { skip, timeout: 280_000 }, () => {
  let datapath: NftablesDatapath
  before(async () => {
    const posix = loadPosix()
    assert.equal(posix.unshareNetwork(), 0)
    const sizes = { prefixesMax: 65_536, policyEntriesMax: 1024 }
    datapath = new NftablesDatapath({ netlink: loadNetlink(), posix, ...sizes })
    datapath.start()
    commit(addresses(0, COUNT))
    await settled()
  })
  after(() => datapath.stop({ leaveEnforcing: false }))

  /** The kernel enlarges a set's table in the background. Meanwhile a listing can have an element twice or miss it. */
  async function settled(): Promise<void> {
    for (
      let alike = 0;
      alike < 3;
      alike = new Set(textsOf(datapath.dump())).size === COUNT ? alike + 1 : 0
    )
      await sleep(50)
  }

  function commit(prefixUpserts: PrefixBatch): void {
    let result = datapath.commit({
      policyUpserts: [],
      prefixUpserts,
      endpointUpserts: [],
      endpointRemovals: [],
      prefixRemovals: new PrefixBatch(1),
      policyRemovals: [],
    })
    datapath.onCommitted((each) => (result = each))
    datapath.finishCommit()
    assert.deepEqual(result, [])
  }

  function readOn(
    reading: Generator<undefined, DatapathDump>,
    between: (steps: number) => void,
  ): DatapathDump {
    for (let steps = 1; ; steps++) {
      const step = reading.next()
      if (step.done === true) return step.value
      between(steps)
    }
  }

  it('dumpInSlices returns the same as dump, in many steps', () => {
    let count = 0
    const dump = readOn(datapath.dumpInSlices(), (steps) => (count = steps))
    assert.deepEqual(textsOf(dump), textsOf(datapath.dump()))
    assert.equal(dump.prefixes.count, COUNT)
    // An element takes some 44 octets, and a step handles one part of at most 64 KiB. Each part is received, then read.
    assert.ok(count > (2 * COUNT * 44) / 65_536, `${count} steps`)
  })

  it('dumpInSlices lets commits and questions run between two steps', () => {
    let committed = 0
    const dump = readOn(datapath.dumpInSlices(), (steps) => {
      if (steps % 4 !== 0 || committed === 10) return
      commit(addresses(COUNT + committed++, 1))
      assert.equal(datapath.mode.read(), 'enforce')
    })
    assert.ok(committed > 1, `${committed} commits`)
    const texts = new Set(textsOf(dump))
    const missing = textsOf(datapath.dump()).filter((text) => !texts.has(text))
    // The last commit began the listing again, so only later additions to sets that were read before are missing.
    assert.ok(missing.length <= committed, `${missing.length} missing, ${committed} commits`)
  })

  it('dumpInSlices that is not read to its end leaves nothing open', () => {
    const before = held()
    for (const steps of [0, 1, 2, 3, 5, 8]) {
      const reading = datapath.dumpInSlices()
      for (let i = 0; i < steps; i++) reading.next()
      reading.return({ ...datapath.dump() })
    }
    assert.equal(held(), before)
  })
})
