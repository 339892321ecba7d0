import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearest } from '../../src/core/did-you-mean.ts'

test('nearest finds the word that was meant, or none', () => {
  const keys = ['listeners', 'upstreams', 'min-ttl', 'max-ttl', 'toFQDNs', 'to']
  const rows: readonly (readonly [string, string | undefined, string])[] = [
    ['lisen', undefined, 'too far for five letters'],
    ['listener', 'listeners', 'one letter missing'],
    ['upstraems', 'upstreams', 'two letters swapped'],
    ['min_ttl', 'min-ttl', 'underscore for hyphen'],
    ['minTTL', 'min-ttl', 'another way of writing'],
    ['toFqdns', 'toFQDNs', 'case only'],
    ['banana', undefined, 'nothing like it'],
    ['', undefined, 'nothing'],
    ['x'.repeat(10_000), undefined, 'a word too long to compare'],
  ]
  for (const [word, expected, why] of rows) assert.equal(nearest(word, keys), expected, why)
})
