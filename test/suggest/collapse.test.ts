import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collapse } from '../../src/suggest/collapse.ts'

test('collapse makes a pattern of siblings, never where anybody may have a name', () => {
  const rows: readonly (readonly [parent: string, pattern: boolean, reason: string])[] = [
    ['cdn.example', true, 'a domain'],
    ['eu.cdn.example', true, 'deeper'],
    ['com', false, 'a top-level domain'],
    ['uk', false, 'of a country'],
    ['co.uk', false, 'where a registry sells'],
    ['com.au', false, 'likewise'],
    ['ac.jp', false, 'likewise'],
    ['shop.co.uk', true, 'somebody has it'],
    ['co.example', true, 'no country has so many letters'],
    ['shop.uk', true, 'no word of a registry'],
    ['s3.amazonaws.com', true, 'a hoster, which only a list would tell'],
  ]
  for (const [parent, isPattern, reason] of rows) {
    const names = ['a', 'b', 'c'].map((label) => `${label}.${parent}`)
    const { texts, patterns } = collapse(names, 3)
    assert.deepEqual(texts, isPattern ? [`*.${parent}`] : names, `${parent}: ${reason}`)
    assert.equal(patterns.size, isPattern ? 1 : 0, parent)
  }
})
