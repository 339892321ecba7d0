import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clearedEnv, isKeepable } from '../../src/sandbox/environment.ts'

const ENV = {
  PATH: '/bin',
  HOME: '/root',
  LC_TIME: 'C',
  TOKEN: 't',
  NPM_A: '1',
  NPM_B: '2',
  NPM: '3',
}

test('clearedEnv keeps basic variables and those that --keep names', () => {
  const rows: readonly (readonly [keep: string, expected: string])[] = [
    ['', 'HOME LC_TIME PATH'],
    ['TOKEN', 'HOME LC_TIME PATH TOKEN'],
    ['NPM_*', 'HOME LC_TIME NPM_A NPM_B PATH'],
    ['MISSING', 'HOME LC_TIME PATH'],
    ['TOK', 'HOME LC_TIME PATH'],
  ]
  for (const [keep, expected] of rows) {
    const env = clearedEnv(ENV, keep.split(' ').filter(Boolean))
    assert.equal(Object.keys(env).sort().join(' '), expected, keep)
  }
})

test('isKeepable accepts names of variables and their beginnings', () => {
  const rows: readonly (readonly [text: string, expected: boolean])[] = [
    ['TOKEN', true],
    ['_x9', true],
    ['NPM_*', true],
    ['*', false],
    ['A=b', false],
    ['A*B', false],
    ['', false],
  ]
  for (const [text, expected] of rows) assert.equal(isKeepable(text), expected, text)
})
