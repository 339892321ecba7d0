import assert from 'node:assert/strict'
import { test } from 'node:test'
import { identity } from '../../src/core/ids.ts'
import { Numbers } from '../../src/identity/numbers.ts'
import { FIRST_LOCAL, LAST_LOCAL } from '../../src/identity/reserved.ts'

const NOBODY = (): boolean => false

test('Numbers.take gives a set the number of the daemon before, in any order of its labels', () => {
  const id = identity(FIRST_LOCAL + 7)
  const numbers = new Numbers({
    carried: new Set([id]),
    withheld: [{ id, labels: ['reserved:world', 'fqdn:a'] }],
  })
  assert.deepEqual(numbers.labelsOf(id), ['reserved:world', 'fqdn:a'])
  const other = numbers.take(() => ['fqdn:a'], NOBODY)
  assert.equal(other, FIRST_LOCAL + 8, 'another set gets a number above all known ones')
  assert.equal(
    numbers.take(() => ['fqdn:a', 'reserved:world'], NOBODY),
    id,
  )
  assert.equal(numbers.labelsOf(id), undefined, 'claimed')
})

test('Numbers.take gives one of two numbers whose labels became equal, and the other to no set', () => {
  const [first, second] = [identity(FIRST_LOCAL), identity(FIRST_LOCAL + 1)]
  const labels = ['fqdn:a']
  const numbers = new Numbers({
    carried: new Set(),
    withheld: [
      { id: first, labels },
      { id: second, labels },
    ],
  })
  const given = new Set<number>()
  const take = (): number => {
    const id = numbers.take(
      () => labels,
      (known) => given.has(known),
    )
    given.add(id)
    return id
  }
  assert.deepEqual([take(), take()], [first, FIRST_LOCAL + 2])
  assert.deepEqual(
    numbers.labelsOf(second),
    labels,
    'entries with the number still have its labels',
  )
})

test('Numbers.take gives a withheld number to no other set, until it is forgotten', () => {
  const withheld = [{ id: identity(FIRST_LOCAL), labels: ['fqdn:a'] }]
  const numbers = new Numbers({ carried: new Set([identity(LAST_LOCAL)]), withheld })
  const first = numbers.take(() => ['fqdn:b'], NOBODY)
  assert.equal(first, FIRST_LOCAL + 1, 'the round starts again and skips withheld numbers')
  numbers.forgetWithheld()
  assert.deepEqual([...numbers.withheld], [])
  const given = new Set<number>([first])
  const second = numbers.take(
    () => ['fqdn:a'],
    (id) => given.has(id),
  )
  assert.equal(second, FIRST_LOCAL + 2, 'its set then gets another number')
})

test('Numbers.take throws when every number is in use', () => {
  const numbers = new Numbers({ carried: new Set() })
  assert.throws(
    () =>
      numbers.take(
        () => [],
        () => true,
      ),
    /all 2\^24 numbers are in use/,
  )
})
