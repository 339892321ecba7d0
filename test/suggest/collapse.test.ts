import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collapse } from '../../src/suggest/collapse.ts'

test('collapse makes a pattern of siblings, and none below a public suffix', () => {
  const rows: readonly (readonly [parent: string, pattern: boolean, reason: string])[] = [
    ['cdn.example', true, 'a domain'],
    ['eu.cdn.example', true, 'deeper'],
    ['com', false, 'a top-level domain'],
    ['uk', false, 'of a country'],
    ['co.uk', false, 'where a registry sells'],
    ['com.au', false, 'likewise'],
    ['ac.jp', false, 'likewise'],
    ['shop.co.uk', true, 'a registered name'],
    ['co.example', true, 'no registry has it'],
    ['shop.uk', true, 'no suffix of the list'],
    ['s3.amazonaws.com', false, 'a hoster that gives names to anyone'],
    ['github.io', false, 'likewise'],
    ['blogspot.com', false, 'likewise'],
    ['me.github.io', true, 'a registered name'],
    ['city.kawasaki.jp', true, 'an exception of the list'],
    ['a.ck', false, 'below a suffix with a star'],
    ['_srv.example.net', true, 'no name of a host'],
  ]
  for (const [parent, isPattern, reason] of rows) {
    const names = ['a', 'b', 'c'].map((label) => `${label}.${parent}`)
    const { texts, patterns } = collapse(names, 3)
    assert.deepEqual(texts, isPattern ? [`*.${parent}`] : names, `${parent}: ${reason}`)
    assert.equal(patterns.size, isPattern ? 1 : 0, parent)
  }
})
