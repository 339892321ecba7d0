// Contract: prefixes that only one endpoint sees, and their effect on it and on others.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { endpointId } from '../../src/core/ids.ts'
import { frame, SYN, tcp } from '../support/packets.ts'
import {
  batch,
  commit,
  endpoint,
  LEARNED,
  PEER_4,
  PEER_6,
  POD,
  POD_4,
  POD_6,
  policy,
  WORLD_4,
  WORLD_6,
  type Bench,
  type BenchMaker,
} from './bench.ts'
import { withBench } from './commits.ts'

type Verdict = 'pass' | 'drop'

const OTHER = endpointId(6)
const UNKNOWN_4 = '203.0.113.9'

function send(bench: Bench, id = POD, target = PEER_4): Verdict {
  const source = target.includes(':') ? POD_6 : POD_4
  return bench.judge(id, 'from', frame({ source, target }, tcp({ from: 40000, to: 443 }, SYN)))
}

/** Two endpoints that can reach LEARNED. `scoped` is for the first. */
function settleTwo(bench: Bench, scoped: boolean): void {
  const failures = commit(bench.datapath, {
    policyUpserts: [policy({ identity: LEARNED }), policy({ endpoint: OTHER, identity: LEARNED })],
    endpointUpserts: [
      endpoint({ hook: bench.interfaceHook(1), scoped }),
      endpoint({ id: OTHER, hook: bench.interfaceHook(2), scoped: true }),
    ],
  })
  assert.deepEqual(failures, [])
}

export function contractOfScopes(maker: BenchMaker): void {
  const skip = maker.unavailable ?? false
  const withTwo = (scoped: boolean, run: (bench: Bench) => void): void =>
    withBench(maker, {}, (bench) => {
      settleTwo(bench, scoped)
      run(bench)
    })

  describe(`${maker.name}: scopes`, { skip }, () => {
    test('judge uses an entry of the endpoint’s own scope, and no other endpoint sees it', () => {
      withTwo(true, (bench) => {
        const rows = batch([
          [`${PEER_4}/32`, LEARNED, WORLD_4, POD],
          [`${PEER_6}/128`, LEARNED, WORLD_6, POD],
        ])
        commit(bench.datapath, { prefixUpserts: rows })
        assert.deepEqual([send(bench), send(bench, POD, PEER_6)], ['pass', 'pass'])
        assert.deepEqual([send(bench, OTHER), send(bench, OTHER, PEER_6)], ['drop', 'drop'])
        commit(bench.datapath, { prefixRemovals: rows })
        assert.equal(send(bench), 'drop', 'removed')
      })
    })

    test('judge of an endpoint without a scope sees only the node’s entries', () => {
      withTwo(false, (bench) => {
        commit(bench.datapath, {
          prefixUpserts: batch([[`${PEER_4}/32`, LEARNED, WORLD_4, POD]]),
        })
        assert.equal(send(bench), 'drop')
        commit(bench.datapath, { prefixUpserts: batch([[`${PEER_4}/32`, LEARNED, WORLD_4]]) })
        assert.equal(send(bench), 'pass')
      })
    })

    test('judge uses the own scope before the node’s, and the node’s where the own scope is empty', () => {
      withTwo(true, (bench) => {
        const rows: readonly (readonly [Verdict, string, number, number, string])[] = [
          ['pass', PEER_4, LEARNED, 0, 'the node’s, where the own scope is empty'],
          ['drop', PEER_4, LEARNED + 1, POD, 'its own over the node’s'],
          ['pass', PEER_4, LEARNED, POD, 'its own, replaced'],
        ]
        for (const [verdict, target, id, scope, reason] of rows) {
          const upserts = batch([[`${target}/32`, id, WORLD_4, scope]])
          commit(bench.datapath, { prefixUpserts: upserts })
          assert.equal(send(bench), verdict, reason)
        }
        assert.equal(send(bench, POD, UNKNOWN_4), 'drop', 'in neither scope: the world')
        commit(bench.datapath, { policyUpserts: [policy({ identity: WORLD_4 })] })
        assert.equal(send(bench, POD, UNKNOWN_4), 'pass')
      })
    })

    test('judge uses a wider prefix of the own scope before a longer one of the node', () => {
      withTwo(true, (bench) => {
        commit(bench.datapath, {
          prefixUpserts: batch([
            [`${PEER_4}/32`, LEARNED + 1, WORLD_4],
            ['192.0.2.0/24', LEARNED, WORLD_4, POD],
          ]),
        })
        assert.deepEqual([send(bench), send(bench, OTHER)], ['pass', 'drop'])
      })
    })

    test('dump returns the scope of each entry, and a restart keeps them', () => {
      withTwo(true, (bench) => {
        commit(bench.datapath, {
          prefixUpserts: batch([
            [`${PEER_4}/32`, LEARNED, WORLD_4],
            [`${PEER_4}/32`, LEARNED + 1, WORLD_4, POD],
            [`${PEER_4}/32`, LEARNED + 2, WORLD_4, OTHER],
          ]),
        })
        const expected = [
          `0 ${PEER_4}/32 ${LEARNED}`,
          `${POD} ${PEER_4}/32 ${LEARNED + 1}`,
          `${OTHER} ${PEER_4}/32 ${LEARNED + 2}`,
        ]
        assert.deepEqual(prefixesOf(bench), expected)
        assert.deepEqual(scopedOf(bench), [`${POD} true`, `${OTHER} true`])
        bench.restart()
        assert.deepEqual(prefixesOf(bench), expected)
        assert.deepEqual(scopedOf(bench), [`${POD} true`, `${OTHER} true`])
      })
    })

    test('commit counts entries of all scopes against one bound', () => {
      withBench(maker, { prefixes: 3 }, ({ datapath }) => {
        const failures = commit(datapath, {
          prefixUpserts: batch([
            ['198.51.100.1/32', LEARNED, WORLD_4],
            ['198.51.100.1/32', LEARNED, WORLD_4, POD],
            ['198.51.100.2/32', LEARNED, WORLD_4, OTHER],
            ['198.51.100.2/32', LEARNED, WORLD_4, POD],
            ['198.51.100.3/32', LEARNED, WORLD_4],
            ['198.51.100.1/32', LEARNED + 1, WORLD_4, POD],
          ]),
        })
        assert.deepEqual(
          failures.map(({ index, code }) => `${index} ${code}`),
          ['3 ENOSPC', '4 ENOSPC'],
        )
      })
    })
  })
}

function prefixesOf(bench: Bench): readonly string[] {
  const { prefixes } = bench.datapath.dump()
  return Array.from(
    { length: prefixes.count },
    (_, i) => `${prefixes.scope(i)} ${prefixes.format(i)} ${prefixes.identity(i)}`,
  ).toSorted()
}

function scopedOf(bench: Bench): readonly string[] {
  const { endpoints } = bench.datapath.dump()
  return endpoints.map(({ id, scoped }) => `${id} ${scoped}`).toSorted()
}
