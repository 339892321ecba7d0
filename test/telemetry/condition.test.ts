import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Condition } from '../../src/telemetry/condition.ts'

const SECOND = 1000

const ROWS: readonly (readonly [why: string, bad: (second: number) => boolean, told: string])[] = [
  ['nothing of what is well', () => false, ''],
  ['a failure once, however long it lasts', () => true, '0 fails'],
  ['the end of it at once', (second) => second < 5, '0 fails, 5 is well'],
  ['one that began later', (second) => second > 2, '3 fails'],
  [
    'a failure that comes and goes once a minute, and no end without its beginning',
    (second) => second % 2 === 0,
    '0 fails, 1 is well, 60 fails, 61 is well, 120 fails, 121 is well',
  ],
  [
    'a second failure within the minute, at the end of that minute',
    (second) => second !== 5,
    '0 fails, 5 is well, 60 fails',
  ],
  [
    'no second failure that ends within the minute',
    (second) => second < 5 || second === 9,
    '0 fails, 5 is well',
  ],
]

for (const [why, bad, told] of ROWS) {
  test(`Condition reports ${why}`, () => {
    const condition = new Condition()
    const lines = Array.from({ length: 125 }, (_, second) => {
      const news = condition.look(second * SECOND, bad(second))
      return news === undefined ? [] : [`${second} ${news}`]
    })
    assert.equal(lines.flat().join(', '), told)
  })
}

test('Condition reports how long a failure lasted', () => {
  const condition = new Condition()
  condition.look(0, false)
  condition.look(1000, true)
  condition.look(4000, true)
  assert.equal(condition.lasted(6000), 5000)
})
