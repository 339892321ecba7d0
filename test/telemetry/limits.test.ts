import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configKeyOf, isWorthALine, LimitHits, type LimitUse } from '../../src/telemetry/limits.ts'
import type { LogFields } from '../../src/telemetry/log.ts'
import { SILENT } from '../../src/telemetry/silent.ts'
import { FakeClock } from '../support/fake-clock.ts'

test('isWorthALine is true from 80 % of a bound on, and for a bound that was hit', () => {
  const rows: readonly (readonly [
    use: number | undefined,
    hits: number,
    isSo: boolean,
    reason: string,
  ])[] = [
    [79, 0, false, 'below'],
    [80, 0, true, 'at 80 %'],
    [100, 0, true, 'at the bound'],
    [undefined, 0, false, 'a bound per client has no use'],
    [1, 1, true, 'it was hit once and has room again'],
    [undefined, 1, true, 'a bound per client that was hit'],
  ]
  for (const [use, hits, isSo, reason] of rows) {
    assert.equal(isWorthALine({ limit: 'pairs', use, bound: 100, hits }), isSo, reason)
  }
})

test('configKeyOf returns the key to change in the configuration', () => {
  const keyOf = (limit: string) => configKeyOf({ limit, use: 1, bound: 1, hits: 1 })
  assert.equal(keyOf('pairs'), 'limits.pairs')
  assert.equal(keyOf('flows.max-size'), 'flows.max-size')
})

test('LimitHits reports only the first hit of each bound, with its key', () => {
  const clock = new FakeClock()
  const told: LogFields[] = []
  let limits: readonly LimitUse[] = []
  const log = { ...SILENT, warn: (fields: LogFields) => void told.push(fields) }
  const hits = new LimitHits(() => limits, clock, log)
  const bound = 2
  const rows: readonly (readonly [
    limits: readonly LimitUse[],
    told: readonly LogFields[],
    reason: string,
  ])[] = [
    [[{ limit: 'pairs', use: 2, bound, hits: 0 }], [], 'at the bound, and nothing was over it'],
    [
      [{ limit: 'pairs', use: 2, bound, hits: 3 }],
      [{ limit: 'limits.pairs', bound, count: 3 }],
      'the first time',
    ],
    [[{ limit: 'pairs', use: 2, bound, hits: 9 }], [], 'it was told'],
    [
      [
        { limit: 'pairs', use: 2, bound, hits: 9 },
        { limit: 'tcp-connections-per-client', use: undefined, bound, hits: 1 },
        { limit: 'tcp-idle-timeout', use: undefined, bound, hits: 1 },
      ],
      [{ limit: 'limits.tcp-connections-per-client', bound, count: 1 }],
      'another bound; the end of a quiet connection is not reported',
    ],
  ]
  hits.start()
  for (const [now, expected, reason] of rows) {
    told.length = 0
    limits = now
    clock.advance(10_000)
    assert.deepEqual(told, expected, reason)
  }
  told.length = 0
  hits.stop()
  limits = [{ limit: 'endpoints', use: 2, bound, hits: 1 }]
  clock.advance(60_000)
  assert.deepEqual(told, [])
})
