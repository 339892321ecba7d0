import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matchesPattern } from '../../src/core/name-pattern.ts'

test('matchesPattern takes a name, or its beginning and a final star', () => {
  const rows: readonly (readonly [pattern: string, name: string, expected: boolean])[] = [
    ['lxc*', 'lxc1', true],
    ['lxc*', 'lxc', true],
    ['lxc*', 'alxc1', false],
    ['lxc1', 'lxc1', true],
    ['lxc1', 'lxc12', false],
    ['*', 'eth0', true],
    ['', 'eth0', false],
    ['l*c1', 'lxc1', false],
  ]
  for (const [pattern, name, expected] of rows) {
    assert.equal(matchesPattern(pattern, name), expected, `${pattern} ${name}`)
  }
})
