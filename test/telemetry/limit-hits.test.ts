import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LimitHits } from '../../src/telemetry/limit-hits.ts'
import type { LimitUse } from '../../src/telemetry/limits.ts'
import type { LogFields } from '../../src/telemetry/log.ts'
import { SILENT } from '../../src/telemetry/silent.ts'
import { FakeClock } from '../support/fake-clock.ts'

test('LimitHits tells of the first hit of each bound, with its key, and of no other', () => {
  const clock = new FakeClock()
  const told: LogFields[] = []
  let limits: readonly LimitUse[] = []
  const log = { ...SILENT, warn: (fields: LogFields) => void told.push(fields) }
  const hits = new LimitHits({ clock, log, limits: () => limits })
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
      'another one; that a quiet connection ends is no news',
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
