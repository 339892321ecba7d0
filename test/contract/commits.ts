// Contract: what a commit does, which entries it refuses, and what a restart finds.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { endpointId, generation } from '../../src/core/ids.ts'
import type { DatapathDump } from '../../src/datapath/entries.ts'
import { changesOfNothing } from '../../src/proxy/self-check.ts'
import { frame, SYN, tcp } from '../support/packets.ts'
import {
  batch,
  commit,
  endpoint,
  LEARNED,
  PEER_4,
  POD,
  POD_4,
  policy,
  prefix,
  settle,
  WORLD_4,
  WORLD_6,
  type Bench,
  type BenchMaker,
  type Sizes,
} from './bench.ts'

/** Runs with a bench, and closes it afterwards. */
export function withBench(maker: BenchMaker, sizes: Sizes, run: (bench: Bench) => void): void {
  const bench = maker.make(sizes)
  try {
    run(bench)
  } finally {
    bench.close()
  }
}

const hello = frame({ source: POD_4, target: PEER_4 }, tcp({ from: 40000, to: 443 }, SYN))

export function contractOfCommits(maker: BenchMaker): void {
  const skip = maker.unavailable ?? false
  describe(`${maker.name}: commits`, { skip }, () => {
    test('start of an empty place finds nothing and mode enforce', () => {
      withBench(maker, {}, ({ datapath }) => {
        const dump = datapath.dump()
        assert.equal(dump.mode, 'enforce')
        assert.equal(dump.prefixes.count, 0)
        assert.deepEqual([dump.policies, dump.endpoints], [[], []])
      })
    })

    test('commit puts all sections in force at once, and dump reads them back', () => {
      withBench(maker, {}, (bench) => {
        const entries = [policy({ identity: LEARNED, protocol: 6, port: 443, rule: 3 })]
        settle(bench, entries)
        assert.equal(bench.judge(POD, 'from', hello), 'pass')
        const dump = bench.datapath.dump()
        assert.deepEqual(prefixesOf(dump), [
          `192.0.2.1/32 ${LEARNED} 9`,
          `2001:db8::1/128 ${LEARNED} 10`,
        ])
        assert.deepEqual(dump.policies, entries)
        assert.equal(dump.endpoints.length, 1)
        const [pod] = dump.endpoints
        assert.deepEqual(
          [pod?.id, pod?.generation, pod?.enforcing, pod?.audit],
          [5, 1, true, false],
        )
        assert.equal(pod?.hookKey, bench.datapath.hooks.keyOf(bench.interfaceHook(1)))
      })
    })

    test('commit of the entries of a self-check changes nothing', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({ identity: LEARNED })])
        const before = bench.datapath.dump()
        for (let i = 0; i < 3; i++) assert.deepEqual(commit(bench.datapath, changesOfNothing()), [])
        const after = bench.datapath.dump()
        assert.deepEqual(prefixesOf(after), prefixesOf(before))
        assert.deepEqual(after.policies, before.policies)
        assert.equal(bench.judge(POD, 'from', hello), 'pass')
      })
    })

    test('commit of entries in force succeeds, and so does the removal of missing entries', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({})])
        settle(bench, [policy({})])
        const result = commit(bench.datapath, {
          prefixRemovals: batch([['203.0.113.0/24', LEARNED, WORLD_4]]),
          policyRemovals: [policy({ identity: 77 })],
          endpointRemovals: [endpointId(99)],
        })
        assert.deepEqual(result, [])
        assert.equal(bench.datapath.dump().prefixes.count, 2)
      })
    })

    test('commit replaces the identity of a prefix and the verdict of an entry', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({ identity: LEARNED })])
        commit(bench.datapath, { prefixUpserts: batch([[`${PEER_4}/32`, LEARNED + 1, WORLD_4]]) })
        assert.equal(bench.judge(POD, 'from', hello), 'drop')
        commit(bench.datapath, { policyUpserts: [policy({ identity: LEARNED + 1 })] })
        assert.equal(bench.judge(POD, 'from', hello), 'pass')
        commit(bench.datapath, {
          policyUpserts: [policy({ identity: LEARNED + 1, verdict: 'deny' })],
        })
        assert.equal(bench.judge(POD, 'from', hello), 'drop')
      })
    })

    test('commit removes prefixes and policy entries', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({ identity: LEARNED }), policy({ identity: LEARNED, protocol: 17 })])
        commit(bench.datapath, { policyRemovals: [policy({ identity: LEARNED })] })
        assert.equal(bench.judge(POD, 'from', hello), 'drop')
        assert.equal(bench.datapath.dump().policies.length, 1)
        commit(bench.datapath, { prefixRemovals: batch([[`${PEER_4}/32`, LEARNED, WORLD_4]]) })
        assert.equal(bench.datapath.dump().prefixes.count, 1)
      })
    })

    test('commit returns each entry without room, and applies the others', () => {
      withBench(maker, { prefixes: 4, policies: 3 }, ({ datapath }) => {
        const rows = Array.from(
          { length: 6 },
          (_, i) => [`198.51.100.${i}/32`, LEARNED, WORLD_4] as const,
        )
        const entries = Array.from({ length: 5 }, (_, i) => policy({ identity: LEARNED + i }))
        const failures = commit(datapath, { prefixUpserts: batch(rows), policyUpserts: entries })
        assert.deepEqual(failures, [
          { section: 'policy', action: 'upsert', index: 3, code: 'ENOSPC' },
          { section: 'policy', action: 'upsert', index: 4, code: 'ENOSPC' },
          { section: 'prefix', action: 'upsert', index: 4, code: 'ENOSPC' },
          { section: 'prefix', action: 'upsert', index: 5, code: 'ENOSPC' },
        ])
        assert.equal(datapath.dump().prefixes.count, 4)
        assert.equal(datapath.dump().policies.length, 3)
      })
    })

    test('commit continues after a refused entry in the middle', () => {
      withBench(maker, { prefixes: 2 }, ({ datapath }) => {
        commit(datapath, { prefixUpserts: batch([['198.51.100.1/32', LEARNED, WORLD_4]]) })
        const rows = ['198.51.100.2/32', '198.51.100.3/32', '198.51.100.1/32'].map(
          (text) => [text, LEARNED + 1, WORLD_4] as const,
        )
        const failures = commit(datapath, { prefixUpserts: batch(rows) })
        assert.deepEqual(failures, [
          { section: 'prefix', action: 'upsert', index: 1, code: 'ENOSPC' },
        ])
        assert.deepEqual(prefixesOf(datapath.dump()), [
          `198.51.100.1/32 ${LEARNED + 1} 9`,
          `198.51.100.2/32 ${LEARNED + 1} 9`,
        ])
      })
    })

    test('commit removes an endpoint with everything of it', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({})])
        assert.deepEqual(commit(bench.datapath, { endpointRemovals: [POD] }), [])
        assert.deepEqual(bench.datapath.dump().endpoints, [])
        assert.equal(bench.judge(POD, 'from', hello), 'drop', 'a hook without endpoint is closed')
      })
    })

    test('commit moves an endpoint to new sources, flags and generation', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({})])
        settle(bench, [policy({})], {
          generation: generation(2),
          audit: true,
          sources: [prefix('10.0.1.6')],
        })
        const [pod] = bench.datapath.dump().endpoints
        assert.deepEqual([pod?.generation, pod?.audit, pod?.sources.length], [2, true, 1])
        assert.equal(bench.judge(POD, 'from', hello), 'drop', 'the old source is now foreign')
      })
    })

    test('commit gives a hook to another endpoint in one step', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({ identity: LEARNED })])
        const next = endpointId(6)
        const failures = commit(bench.datapath, {
          policyUpserts: [policy({ endpoint: next, identity: LEARNED })],
          endpointUpserts: [endpoint({ id: next, hook: bench.interfaceHook(1) })],
          endpointRemovals: [POD],
        })
        assert.deepEqual(failures, [])
        assert.deepEqual(
          bench.datapath.dump().endpoints.map((each) => each.id),
          [next],
        )
        assert.equal(bench.judge(next, 'from', hello), 'pass')
      })
    })

    test('counters count the written entries by map', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({ identity: LEARNED })])
        const before = bench.datapath.reports.counters()
        commit(bench.datapath, { prefixUpserts: batch([['2001:db8::2/128', LEARNED, WORLD_6]]) })
        const after = bench.datapath.reports.counters()
        const written = (map: string): number =>
          (after[`map_writes_${map}`] ?? 0) - (before[`map_writes_${map}`] ?? 0)
        assert.deepEqual(['ipcache', 'policy', 'endpoints'].map(written), [1, 0, 0])
      })
    })

    test('restart finds everything in force, including the mode, and can claim or remove it', () => {
      withBench(maker, {}, (bench) => {
        settle(bench, [policy({ identity: LEARNED })])
        bench.datapath.mode.set('audit')
        const before = plain(bench.datapath.dump())
        bench.restart()
        assert.deepEqual(plain(bench.datapath.dump()), before)
        bench.datapath.mode.set('enforce')
        settle(bench, [policy({ identity: LEARNED })])
        assert.equal(bench.judge(POD, 'from', hello), 'pass')
        bench.restart()
        commit(bench.datapath, { endpointRemovals: [POD] })
        assert.deepEqual(bench.datapath.dump().endpoints, [])
      })
    })
  })
}

function prefixesOf({ prefixes }: DatapathDump): readonly string[] {
  const rows = Array.from(
    { length: prefixes.count },
    (_, i) => `${prefixes.format(i)} ${prefixes.identity(i)} ${prefixes.addressClass(i)}`,
  )
  return rows.sort()
}

function plain(dump: DatapathDump): object {
  return { ...dump, prefixes: prefixesOf(dump) }
}
