// A thread reads the kernel's prefixes before the datapath starts. It reads the same as a dump.

import assert from 'node:assert/strict'
import { linkSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { identity } from '../../../src/core/ids.ts'
import { EbpfDatapath } from '../../../src/datapath/ebpf/adapter.ts'
import { layoutDirectory, pinDirectory } from '../../../src/datapath/ebpf/maps/bpffs.ts'
import { ReadAhead } from '../../../src/datapath/ebpf/maps/dump.ts'
import { LAYOUT_VERSION } from '../../../src/datapath/ebpf/maps/layout.ts'
import { PrefixBatch } from '../../../src/datapath/prefix-batch.ts'
import { batch, commit, LEARNED, WORLD_4 } from '../../contract/bench.ts'
import {
  type EbpfBench,
  ebpfMaker,
  makeEbpfBench,
  SMALL_BOUNDS,
} from '../../contract/ebpf-bench.ts'

const skip = ebpfMaker.unavailable ?? false

function withBench(run: (bench: EbpfBench) => void): void {
  const bench = makeEbpfBench()
  try {
    run(bench)
  } finally {
    bench.close()
  }
}

function many(count: number): PrefixBatch {
  const rows = new PrefixBatch(count)
  const octets = new Uint8Array(16)
  for (let i = 0; i < count; i++) {
    octets.set([198, 18, i >> 8, i])
    rows.add({ family: 4, octets, length: 32 }, identity(LEARNED + (i % 3)), identity(WORLD_4))
  }
  return rows
}

/** Each entry as text, sorted. */
function entriesOf(prefixes: PrefixBatch | undefined): readonly string[] | undefined {
  if (prefixes === undefined) return undefined
  return Array.from({ length: prefixes.count }, (_, i) => {
    return `${prefixes.format(i)} ${prefixes.identity(i)} ${prefixes.addressClass(i)}`
  }).sort()
}

describe('read ahead', { skip }, () => {
  for (const [count, reason] of [
    [0, 'an empty map'],
    [1, 'a single entry'],
    [20_000, 'more than one call to the kernel returns'],
  ] as const) {
    test(`ReadAhead returns the same as a dump: ${count} entries, ${reason}`, () =>
      withBench(({ bpf, pinPath, datapath }) => {
        assert.deepEqual(commit(datapath, { prefixUpserts: many(count) }), [])
        const ahead = ReadAhead.begin(bpf, pinPath)
        assert.ok(ahead !== undefined)
        const { hosts: read, trie } = ahead.take()!
        assert.equal(trie.count, 0)
        assert.deepEqual(entriesOf(read), entriesOf(datapath.dump().prefixes))
        // The batch accepts further entries.
        read.add(
          { family: 4, octets: new Uint8Array(16), length: 0 },
          identity(LEARNED),
          identity(WORLD_4),
        )
        assert.equal(read.count, count + 1)
        assert.equal(read.format(count), '0.0.0.0/0')
      }))
  }

  test('ReadAhead returns nothing without pins, and for a map of another shape', () =>
    withBench(({ bpf, pinPath, datapath }) => {
      const nowhere = join(pinPath, 'other')
      assert.equal(ReadAhead.begin(bpf, nowhere), undefined)
      mkdirSync(pinDirectory(nowhere), { recursive: true })
      datapath.stop({ leaveEnforcing: true })
      renameSync(join(pinDirectory(pinPath), 'ng_policy'), join(pinDirectory(nowhere), 'ng_hosts'))
      assert.equal(ReadAhead.begin(bpf, nowhere), undefined)
    }))

  test('EbpfDatapath starts with the prefixes that were read ahead, and reads the rest itself', () =>
    withBench((bench) => {
      const { bpf, posix, pinPath } = bench
      const rows = batch([
        ['198.18.0.1/32', LEARNED, WORLD_4],
        ['198.18.0.0/16', LEARNED + 1, WORLD_4],
      ])
      assert.deepEqual(commit(bench.datapath, { prefixUpserts: rows }), [])
      bench.datapath.stop({ leaveEnforcing: true })
      for (const [addon, reason] of [
        [bpf, 'read ahead'],
        [{ ...bpf, gather: () => -12 }, 'no thread can start'],
      ] as const) {
        const next = new EbpfDatapath({ bpf: addon, posix, pinPath, ...SMALL_BOUNDS })
        next.readAhead()
        const found = entriesOf(next.start().prefixes)
        next.stop({ leaveEnforcing: true })
        assert.deepEqual(found, entriesOf(rows)?.toSorted(), reason)
      }
      bench.restart()
    }))

  test('EbpfDatapath starts without the prefixes that were read ahead if an older layout ran since', () =>
    withBench((bench) => {
      const { bpf, posix, pinPath } = bench
      const rows = batch([['198.18.0.1/32', LEARNED, WORLD_4]])
      assert.deepEqual(commit(bench.datapath, { prefixUpserts: rows }), [])
      bench.datapath.stop({ leaveEnforcing: true })
      // A map that only the older layout has, so that the maps of this layout count as stale.
      mkdirSync(layoutDirectory(pinPath, LAYOUT_VERSION - 1))
      const own = join(pinDirectory(pinPath), 'ng_events')
      linkSync(own, join(layoutDirectory(pinPath, LAYOUT_VERSION - 1), 'ng_gone'))
      const next = new EbpfDatapath({ bpf, posix, pinPath, ...SMALL_BOUNDS })
      next.readAhead()
      const found = entriesOf(next.start().prefixes)
      assert.deepEqual(found, entriesOf(next.dump().prefixes))
      assert.deepEqual(found, [])
      next.stop({ leaveEnforcing: true })
      bench.restart()
    }))
})
