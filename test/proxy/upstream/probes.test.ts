// Probes and readiness on fake time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Probes, Readiness } from '../../../src/proxy/upstream/probes.ts'
import { RandomPool, systemRandom } from '../../../src/core/random.ts'
import { ServerPool } from '../../../src/proxy/upstream/server-pool.ts'
import { FakeClock } from '../../support/fake-clock.ts'

/** Sending fails for the first `sendsFrom` milliseconds. */
function mkProbes({ sendsFrom = 0 } = {}) {
  const clock = new FakeClock()
  const opens = clock.now() + sendsFrom
  const pool = new ServerPool([
    { family: 4, address: '192.0.2.1', port: 53 },
    { family: 4, address: '192.0.2.2', port: 53 },
  ])
  const asked: { readonly server: number; readonly at: number }[] = []
  const probes = new Probes({
    clock,
    pool,
    random: new RandomPool(systemRandom),
    send: (server) => clock.now() >= opens && asked.push({ server, at: clock.now() }) > 0,
  })
  return { clock, pool, probes, asked }
}

test('Probes ask only failing servers, at growing and varying intervals, until an answer arrives', () => {
  const { clock, pool, asked } = mkProbes()
  clock.advance(60_000)
  assert.equal(asked.length, 0, 'none while all are up')
  const start = clock.now()
  pool.markDown(1)
  clock.advance(10_000)
  assert.ok(asked.every(({ server }) => server === 1))
  const gaps = asked.map(({ at }, i) => at - (asked[i - 1]?.at ?? start))
  for (const [i, gap] of gaps.entries()) {
    const interval = Math.min(250 * 2 ** i, 1500)
    assert.ok(gap >= interval * 0.8 && gap <= interval * 1.2, `probe ${i} after ${gap} ms`)
  }
  assert.ok(gaps.length >= 7 && new Set(gaps.slice(3)).size > 1, 'intervals vary')
  pool.answered(1, false)
  const before = asked.length
  clock.advance(60_000)
  assert.equal(asked.length, before)
})

test('Probes skip a server that answers the next real query, and notice the state of one without queries', () => {
  const { clock, pool, asked } = mkProbes()
  pool.failedAttempt(0)
  clock.advance(100)
  pool.answered(0, false)
  clock.advance(10_000)
  assert.equal(asked.length, 0)
  pool.failedAttempt(0)
  clock.advance(310)
  assert.equal(asked.length, 1)
  pool.answered(0, false)
  clock.advance(10_000)
  assert.deepEqual([pool.stateOf(0), asked.length], ['up', 1])
  pool.failedAttempt(0)
  clock.advance(10_000)
  assert.equal(pool.stateOf(0), 'down', 'probes without an answer count as attempts, too')
})

test('Probes of proxies that lost a server at the same time spread', () => {
  const first = Array.from({ length: 50 }, () => {
    const { clock, pool, asked } = mkProbes()
    pool.markDown(0)
    clock.advance(400)
    return asked[0]?.at ?? 0
  })
  assert.ok(Math.max(...first) - Math.min(...first) > 40, 'over a tenth of a second')
})

test('Readiness asks each server once, and reports silent ones as down', () => {
  const { clock, pool, probes, asked } = mkProbes()
  const readiness = new Readiness({
    clock,
    pool,
    probes,
    timeoutMs: 4000,
  })
  readiness.start()
  assert.deepEqual(
    asked.map(({ server }) => server),
    [0, 1],
  )
  assert.equal(readiness.anyAnswered, false)
  assert.equal(readiness.answered(0), undefined)
  pool.answered(1, false, 3)
  assert.equal(readiness.anyAnswered, true)
  clock.advance(2000)
  assert.deepEqual(
    [0, 1].map((i) => pool.stateOf(i)),
    ['down', 'up'],
  )
  assert.deepEqual(
    [0, 1].map((i) => readiness.answered(i)),
    [false, true],
  )
  assert.equal(pool.first, 1)
  clock.advance(2000)
  assert.ok(asked.length > 2 && asked.slice(2).every(({ server }) => server === 0))
})

test('Readiness asks silent servers again until one answers, even if sending fails at first', () => {
  const { clock, pool, probes, asked } = mkProbes({ sendsFrom: 5000 })
  const readiness = new Readiness({
    clock,
    pool,
    probes,
    timeoutMs: 4000,
  })
  readiness.start()
  clock.advance(60_000)
  assert.equal(readiness.anyAnswered, false)
  for (const server of [0, 1]) {
    const times = asked.filter((each) => each.server === server).map(({ at }) => at)
    assert.ok(times.length > 30, `server ${server} was asked ${times.length} times`)
    assert.ok(clock.now() - (times.at(-1) ?? 0) <= 1800, 'and it is still asked')
  }
  pool.answered(0, false)
  assert.equal(readiness.anyAnswered, true)
})

test('Readiness counts real answers, too, and keeps them', () => {
  const { clock, pool, probes } = mkProbes()
  const readiness = new Readiness({
    clock,
    pool,
    probes,
    timeoutMs: 4000,
  })
  readiness.start()
  clock.advance(3000)
  pool.answered(0, true)
  assert.equal(readiness.answered(0), true)
  pool.failedAttempt(0)
  assert.equal(readiness.answered(0), false)
  assert.equal(readiness.anyAnswered, true)
})
