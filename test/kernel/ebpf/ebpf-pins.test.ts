// The pins that the eBPF datapath leaves in the kernel, and the functions that use them without a daemon; messages about a machine without
// a need; bounds under a flood.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { UnavailableError } from '../../../src/core/errors.ts'
import { identity } from '../../../src/core/ids.ts'
import { EbpfDatapath } from '../../../src/datapath/ebpf/adapter.ts'
import { pinDirectory } from '../../../src/datapath/ebpf/maps/bpffs.ts'
import {
  clearIntercepted,
  readIntercepted,
  setIntercepted,
} from '../../../src/datapath/ebpf/maps/exceptions.ts'
import { KernelMap } from '../../../src/datapath/ebpf/maps/kernel-map.ts'
import { detachAll, readPinnedMode, setPinnedMode } from '../../../src/datapath/ebpf/break-glass.ts'
import { PrefixBatch } from '../../../src/datapath/prefix-batch.ts'
import { frame, SYN, tcp, udp } from '../../support/packets.ts'
import {
  batch,
  commit,
  LEARNED,
  PEER_4,
  POD,
  POD_4,
  policy,
  settle,
  WORLD_4,
  type Sizes,
} from '../../contract/bench.ts'
import {
  type EbpfBench,
  ebpfMaker,
  makeEbpfBench,
  SMALL_BOUNDS,
} from '../../contract/ebpf-bench.ts'

const skip = ebpfMaker.unavailable ?? false

function withBench(run: (bench: EbpfBench) => void, sizes: Sizes = {}): void {
  const bench = makeEbpfBench(sizes)
  try {
    run(bench)
  } finally {
    bench.close()
  }
}

function unavailable(pattern: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof UnavailableError)
    assert.match(error.message, pattern)
    assert.doesNotMatch(error.message, /\n/)
    return true
  }
}

/** Milliseconds. */
function timed(run: () => void): number {
  const started = performance.now()
  run()
  return performance.now() - started
}

const STRAY = '192.0.2.77'

describe('ebpf pins', { skip }, () => {
  test('setPinnedMode opens and closes without a daemon, in less than 100 ms', () =>
    withBench((bench) => {
      const { bpf, pinPath } = bench
      settle(bench, [])
      const hello = frame({ source: POD_4, target: PEER_4 }, tcp({ from: 40000, to: 443 }, SYN))
      assert.equal(readPinnedMode(bpf, pinPath), 'enforce')
      assert.ok(timed(() => setPinnedMode(bpf, pinPath, 'bypass')) < 100)
      assert.equal(bench.judge(POD, 'from', hello), 'pass')
      assert.equal(readPinnedMode(bpf, pinPath), 'bypass')
      setPinnedMode(bpf, pinPath, 'enforce')
      assert.equal(bench.judge(POD, 'from', hello), 'drop')
    }))

  test('setIntercepted opens and closes port 53 without a daemon, and the next daemon reads it', () =>
    withBench((bench) => {
      const { bpf, pinPath } = bench
      settle(bench, [])
      const query = frame({ source: POD_4, target: PEER_4 }, udp({ from: 40000, to: 53 }))
      const families = { 4: true, 6: false }
      const entries = [{ ifindex: bench.ifindex(1), families }]
      bench.datapath.stop({ leaveEnforcing: true })
      assert.equal(setIntercepted(bpf, pinPath, entries), true)
      assert.deepEqual(readIntercepted(bpf, pinPath), entries)
      bench.restart()
      settle(bench, [])
      assert.deepEqual(bench.datapath.exceptions.intercepted(), entries)
      assert.equal(bench.judge(POD, 'from', query), 'pass')
      assert.equal(clearIntercepted(bpf, pinPath), true)
      assert.deepEqual(bench.datapath.exceptions.intercepted(), [])
      assert.equal(bench.judge(POD, 'from', query), 'drop')
    }))

  test('setIntercepted and readIntercepted report that nothing is pinned', () =>
    withBench(({ bpf, pinPath }) => {
      const nowhere = join(pinPath, '..', 'nothing-here')
      assert.equal(setIntercepted(bpf, nowhere, []), false)
      assert.equal(readIntercepted(bpf, nowhere), undefined)
    }))

  test('setPinnedMode and readPinnedMode report that nothing is pinned', () =>
    withBench(({ bpf, pinPath }) => {
      const nowhere = join(pinPath, '..', 'nothing-here')
      assert.throws(() => setPinnedMode(bpf, nowhere, 'bypass'), unavailable(/nothing is enforced/))
      assert.throws(() => readPinnedMode(bpf, nowhere), unavailable(/nothing-here/))
    }))

  test('detachAll removes programs, maps and folders in less than 100 ms, and a second call is no error', () =>
    withBench((bench) => {
      const { bpf, pinPath } = bench
      settle(bench, [])
      bench.datapath.stop({ leaveEnforcing: true })
      const attached = (): string =>
        execFileSync('tc', ['filter', 'show', 'dev', 'lxc1', 'ingress'], { encoding: 'utf8' })
      assert.match(attached(), /ng_tc_from/)
      let hooks = 0
      const spent = timed(() => (hooks = detachAll(bpf, pinPath)))
      assert.ok(spent < 100, `${spent} ms`)
      assert.equal(hooks, 1)
      assert.doesNotMatch(attached(), /ng_tc/)
      assert.equal(existsSync(pinPath), false)
      assert.equal(detachAll(bpf, pinPath), 0)
    }))

  test('start uses pinned maps with the size that they have', () =>
    withBench(
      (bench) => {
        const rows = new PrefixBatch()
        for (let i = 0; i < 4; i++) {
          rows.add(
            { family: 4, octets: Uint8Array.of(10, 0, 0, i), length: 32 },
            identity(LEARNED),
            identity(9),
          )
        }
        bench.datapath.stop({ leaveEnforcing: true })
        const { bpf, posix, pinPath } = bench
        const options = { bpf, posix, pinPath, ...SMALL_BOUNDS }
        const larger = new EbpfDatapath({ ...options, sizes: { ng_hosts: 1000 } })
        larger.start()
        const failures = commit(larger, { prefixUpserts: rows })
        assert.deepEqual(
          failures.map(({ index, code }) => `${index} ${code}`),
          ['3 ENOSPC'],
        )
        larger.stop({ leaveEnforcing: true })
      },
      { prefixes: 3 },
    ))

  test('a whole address that layout 3 left in the trie is in force until it is removed', () =>
    withBench((bench) => {
      const { bpf, pinPath } = bench
      settle(bench, [policy({ identity: LEARNED })])
      const hello = frame({ source: POD_4, target: STRAY }, tcp({ from: 40000, to: 443 }, SYN))
      const found = (): readonly string[] => {
        const { prefixes } = bench.datapath.dump()
        const all = Array.from({ length: prefixes.count }, (_, i) => i)
        const lines = all.map((i) => `${prefixes.format(i)} ${prefixes.identity(i)}`)
        return lines.filter((line) => line.startsWith(STRAY))
      }
      assert.equal(bench.judge(POD, 'from', hello), 'drop')
      const stray = batch([[`${STRAY}/32`, LEARNED, WORLD_4]])
      const fd = bpf.openPin(join(pinDirectory(pinPath), 'ng_ipcache'))
      const trie = new KernelMap(bpf, 'ng_ipcache', fd)
      assert.equal(trie.set(stray.keys, stray.values), 0)
      bench.restart()
      assert.equal(bench.judge(POD, 'from', hello), 'pass')
      assert.deepEqual(found(), [`${STRAY}/32 ${LEARNED}`])
      const other = batch([[`${STRAY}/32`, LEARNED + 1, WORLD_4]])
      assert.deepEqual(commit(bench.datapath, { prefixUpserts: other }), [])
      assert.equal(bench.judge(POD, 'from', hello), 'drop')
      assert.deepEqual(found(), [`${STRAY}/32 ${LEARNED + 1}`])
      assert.deepEqual(commit(bench.datapath, { prefixRemovals: other }), [])
      assert.deepEqual(found(), [])
      assert.equal(trie.get(stray.keys), undefined)
      bpf.close(fd)
    }))

  test('start refuses a pinned map of another shape, with a remedy', () =>
    withBench(({ bpf, posix, pinPath }) => {
      const other = `${pinPath}-other`
      mkdirSync(pinDirectory(other), { recursive: true })
      const args = ['type', 'hash', 'key', '8', 'value', '8', 'entries', '1', 'name', 'ng_policy']
      execFileSync('bpftool', ['map', 'create', join(pinDirectory(other), 'ng_policy'), ...args])
      const options = { bpf, posix, pinPath: other, ...SMALL_BOUNDS }
      assert.throws(
        () => new EbpfDatapath(options).start(),
        unavailable(/ng_policy has another shape: run namegate datapath detach/),
      )
      rmSync(other, { recursive: true })
    }))

  test('start outside of a bpffs says where a bpffs is', () =>
    withBench(({ bpf, posix }) => {
      const folder = mkdtempSync(join(tmpdir(), 'namegate-no-bpffs-'))
      const options = { bpf, posix, pinPath: folder, ...SMALL_BOUNDS }
      assert.throws(
        () => new EbpfDatapath(options).start(),
        unavailable(/no bpffs is mounted there: give a datapath\.ebpf\.pin-path below/),
      )
      rmdirSync(folder)
    }))

  test('a flood of drops makes a bounded number of events, and each read is bounded', () =>
    withBench((bench) => {
      settle(bench, [])
      const octets = frame({ source: POD_4, target: PEER_4 }, udp({ from: 1, to: 2 }))
      const started = performance.now()
      for (let i = 0; i < 20_000; i++) bench.judge(POD, 'from', octets)
      const windows = Math.ceil((performance.now() - started) / 100) + 1
      let events = 0
      bench.datapath.reports.drain(10, () => events++)
      assert.equal(events, 10)
      bench.datapath.reports.drain(1_000_000, () => events++)
      const counters = bench.datapath.reports.counters()
      assert.equal(counters['drop_policy'], 20_000)
      const kept = events + (counters['events_lost'] ?? 0) + (counters['events_sampled_out'] ?? 0)
      assert.equal(kept, 20_000, 'every drop is counted as event, lost or sampled out')
      assert.ok(events <= windows * 200, `${events} events in ${windows} windows`)
    }))

  test('100,000 prefixes are added and removed in batches, and a dump returns them', () =>
    withBench(
      (bench) => {
        const rows = new PrefixBatch(100_000)
        const octets = new Uint8Array(16)
        for (let i = 0; i < 100_000; i++) {
          octets.set([198, 18 + (i >> 16), i >> 8, i])
          rows.add({ family: 4, octets, length: 32 }, identity(LEARNED), identity(9))
        }
        assert.deepEqual(commit(bench.datapath, { prefixUpserts: rows }), [])
        assert.equal(bench.datapath.dump().prefixes.count, 100_000)
        assert.deepEqual(commit(bench.datapath, { prefixRemovals: rows }), [])
        assert.equal(bench.datapath.dump().prefixes.count, 0)
      },
      { prefixes: 200_000 },
    ))

  test('dumpInSlices returns the same as dump, and ends while entries are added and removed', () =>
    withBench(
      (bench) => {
        const [rows, half] = [new PrefixBatch(20_000), new PrefixBatch(10_000)]
        const octets = new Uint8Array(16)
        for (let i = 0; i < 20_000; i++) {
          octets.set([198, 18, i >> 8, i])
          rows.add({ family: 4, octets, length: 32 }, identity(LEARNED), identity(9))
          if (i % 2 === 0)
            half.add({ family: 4, octets, length: 32 }, identity(LEARNED), identity(9))
        }
        assert.deepEqual(commit(bench.datapath, { prefixUpserts: rows }), [])
        const read = (between: (slice: number) => void): ReadonlySet<string> => {
          const reading = bench.datapath.dumpInSlices()
          assert.ok(reading !== undefined)
          for (let slice = 0; ; slice++) {
            const step = reading.next()
            if (step.done === true) {
              assert.ok(slice >= 10_000 / 512, `${slice} slices`)
              const { prefixes } = step.value
              return new Set(Array.from({ length: prefixes.count }, (_, i) => prefixes.format(i)))
            }
            between(slice)
          }
        }
        assert.equal(read(() => undefined).size, 20_000)
        const left = read((slice) => {
          if (slice === 7) commit(bench.datapath, { prefixRemovals: half })
        })
        const { prefixes } = bench.datapath.dump()
        assert.equal(prefixes.count, 10_000)
        for (let i = 0; i < prefixes.count; i++) {
          assert.ok(left.has(prefixes.format(i)), 'entries that stayed all the time are read')
        }
      },
      { prefixes: 40_000 },
    ))
})
