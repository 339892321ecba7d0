import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foundNames, nearest } from '../../src/core/did-you-mean.ts'

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

test('foundNames lists the nearest name first, and at most ten names', () => {
  const many = Array.from({ length: 14 }, (_, i) => `n${i}`)
  const rows: readonly (readonly [string, readonly string[], string, string])[] = [
    ['box', [], 'there is none', 'nothing to list'],
    ['zzzzz', ['a', 'b'], 'found a, b', 'nothing like it: the order of the list'],
    ['bxo', ['a', 'box', 'b'], 'found box, a, b', 'the nearest first'],
    ['n', many.slice(0, 10), `found ${many.slice(0, 10).join(', ')}`, 'ten are listed'],
    [
      'banana',
      [...many, 'bananas'],
      `found bananas, ${many.slice(0, 9).join(', ')} and 5 more`,
      'the nearest is listed, also from behind',
    ],
  ]
  for (const [word, names, expected, why] of rows) {
    assert.equal(foundNames(word, names), expected, why)
  }
})
