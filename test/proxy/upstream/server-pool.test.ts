// Which server is up and which is asked first: by rules, and compared with a model that keeps only the history.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  DOWN_AFTER,
  OVERTAKEN_MAX,
  SERVFAILS_MAX,
  ServerPool,
} from '../../../src/proxy/upstream/server-pool.ts'

function mkPool(count: number): ServerPool {
  return new ServerPool(
    Array.from({ length: count }, (_, i) => ({ family: 4, address: `192.0.2.${i}`, port: 53 })),
  )
}

function times(count: number, run: () => void): void {
  for (let i = 0; i < count; i++) run()
}

test('ServerPool takes a server down after failures in a row and up with any answer', () => {
  const pool = mkPool(2)
  times(DOWN_AFTER - 1, () => pool.failedAttempt(0))
  assert.equal(pool.stateOf(0), 'failing')
  pool.answered(0, true)
  assert.equal(pool.stateOf(0), 'up', 'SERVFAIL is an answer')
  times(DOWN_AFTER, () => pool.failedAttempt(0))
  assert.equal(pool.stateOf(0), 'down')
  assert.equal(pool.first, 1)
  pool.answered(0, false)
  assert.equal(pool.stateOf(0), 'up')
  assert.equal(pool.first, 1, 'sticky')
  assert.deepEqual(pool.counters, { failovers: 1, downs: 1, ups: 1 })
})

test('ServerPool counts the times of each server, and those of chosen servers together', () => {
  const pool = mkPool(2)
  for (const [server, ms] of [
    [0, 5],
    [1, 7],
    [1, 8],
    [2, 100],
    [9, 200],
  ] as const)
    // prettier-ignore
    pool.addRoundTrip(server, ms)
  assert.deepEqual(
    pool.roundTrips.map(({ sum }) => sum),
    [5, 15, 300],
  )
})

test('ServerPool asks fresh servers that are up, then fresh ones that are down, then again', () => {
  const pool = mkPool(3)
  pool.markDown(1)
  const asked: number[] = [pool.begin()]
  for (let i = 0; i < 5; i++) {
    const mask = asked.reduce((bits, server) => bits | (1 << server), 0)
    asked.push(pool.next(mask, asked.at(-1) ?? 0))
  }
  assert.deepEqual(asked, [0, 2, 1, 2, 0, 2])
})

test('ServerPool asks each server in turn when all are down, and the first that answers leads', () => {
  const pool = mkPool(3)
  for (const server of [0, 1, 2]) pool.markDown(server)
  assert.deepEqual(new Set([pool.begin(), pool.begin(), pool.begin()]), new Set([0, 1, 2]))
  pool.answered(2, false)
  assert.equal(pool.begin(), 2)
})

test('ServerPool replaces a first server that is slower again and again, and keeps one that is slower now and then', () => {
  const pool = mkPool(2)
  times(3, () => {
    times(OVERTAKEN_MAX - 1, () => pool.won(1))
    pool.won(0)
  })
  assert.equal(pool.first, 0)
  times(OVERTAKEN_MAX, () => pool.won(1))
  assert.equal(pool.first, 1)
})

test('ServerPool replaces a first server that answers only SERVFAIL by a better one', () => {
  const pool = mkPool(2)
  times(SERVFAILS_MAX - 1, () => pool.answered(0, true))
  pool.answered(0, false)
  times(SERVFAILS_MAX - 1, () => pool.answered(0, true))
  assert.equal(pool.first, 0, 'one other answer among them')
  pool.answered(0, true)
  assert.equal(pool.first, 1)
  assert.equal(pool.stateOf(0), 'up', 'SERVFAIL never makes it down')
  times(SERVFAILS_MAX * 3, () => pool.answered(1, true))
  assert.equal(pool.first, 1, 'when all answer SERVFAIL, the first stays')
  pool.answered(0, false)
  assert.equal(pool.first, 0, 'the other answers well again')
})

test('ServerPool decides only by the last answers and failures', () => {
  const step = fc.record({ server: fc.nat(2), what: fc.constantFrom('answer', 'fail', 'mark') })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const pool = mkPool(3)
      const failing: number[] = []
      pool.onFailing = (server) => failing.push(server)
      const failures = [0, 0, 0]
      const down = [false, false, false]
      let first = 0
      for (const { server, what } of steps) {
        const was = [...failures]
        const begun = failing.length
        if (what === 'answer') {
          pool.answered(server, false, 5)
          failures[server] = 0
          down[server] = false
        } else {
          if (what === 'fail') {
            pool.failedAttempt(server)
            failures[server] = (failures[server] ?? 0) + 1
          } else {
            pool.markDown(server)
            failures[server] = Math.max(1, failures[server] ?? 0)
          }
          if (what === 'mark' || (failures[server] ?? 0) >= DOWN_AFTER) down[server] = true
        }
        if (down[first] === true) first = down.includes(false) ? down.indexOf(false) : first
        assert.deepEqual([...pool.failures], failures)
        assert.deepEqual(
          [0, 1, 2].map((i) => pool.isDown(i)),
          down,
        )
        assert.equal(pool.first, first)
        const begins = was[server] === 0 && failures[server] !== 0
        assert.equal(failing.length, begun + (begins ? 1 : 0))
        if (begins) assert.equal(failing.at(-1), server)
        const asked = pool.begin()
        assert.ok(
          down[asked] === false || !down.includes(false),
          'a server that is up where there is one',
        )
      }
    }),
  )
})
