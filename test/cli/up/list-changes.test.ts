// The lines that `namegate up` prints when lines of its list came into force or went out of force.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ListChanges } from '../../../src/cli/up/list-changes.ts'

const BEFORE = '# head\na.test\nb.test:443/tcp\n'

const TIME = '03:04:05'

const ROWS: readonly (readonly [why: string, text: string, said: readonly string[]])[] = [
  ['the same list', BEFORE, []],
  ['other order, comments and blanks', ' b.test:443/tcp # why\r\na.test', []],
  ['a line twice', `${BEFORE}a.test\n`, []],
  ['a new line', `${BEFORE}c.test\n`, ['03:04:05 now in force: c.test']],
  ['two new lines', `${BEFORE}c.test\n::1\n`, ['03:04:05 now in force: c.test, ::1']],
  ['a line without its end', `${BEFORE}c.test`, ['03:04:05 now in force: c.test']],
  ['a removed line', 'a.test\n', ['03:04:05 no longer in force: b.test:443/tcp']],
  [
    'another port',
    'a.test\nb.test\n',
    ['03:04:05 now in force: b.test', '03:04:05 no longer in force: b.test:443/tcp'],
  ],
  ['a removed list', '', ['03:04:05 no longer in force: a.test, b.test:443/tcp']],
]

for (const [why, text, said] of ROWS) {
  test(`ListChanges says what changed: ${why}`, () => {
    assert.deepEqual(new ListChanges(BEFORE).take(text, TIME), said)
  })
}

test('ListChanges compares with the text before', () => {
  const changes = new ListChanges('')
  assert.deepEqual(changes.take(BEFORE, TIME), ['03:04:05 now in force: a.test, b.test:443/tcp'])
  assert.deepEqual(changes.take(BEFORE, TIME), [])
  assert.deepEqual(changes.take('a.test', TIME), ['03:04:05 no longer in force: b.test:443/tcp'])
})
