// What `lintNames` says to write in place of a text that has the form of a name and is none.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lintNames } from '../../src/lint/names.ts'
import { writtenNames } from '../../src/lint/written-names.ts'
import { mkFile } from '../support/nodes/lint.ts'

const ROWS: readonly (readonly [name: string, remedy: string, reason: string])[] = [
  ['198.51.100.7', 'write the address under toCIDR, with its prefix length', 'an address'],
  ['198.51.100.256', 'correct it, under toCIDR', 'a number is too large'],
  ['1.2.3', 'correct it, under toCIDR', 'a number is missing'],
  ['shop.5', 'write the name that is meant', 'no address is meant'],
]

test('lintNames proposes toCIDR for an address, and a correction for an address with a slip', () => {
  for (const [name, remedy, reason] of ROWS) {
    const text = `\n  endpointSelector: {}\n  egress: [{ toFQDNs: [{ matchName: ${name} }] }]`
    const found = writtenNames(mkFile(text), 'policy.yaml').flatMap((list) =>
      lintNames(list, { portable: false }),
    )
    assert.deepEqual(
      found.map((each) => each.remedy),
      [remedy],
      reason,
    )
  }
})
