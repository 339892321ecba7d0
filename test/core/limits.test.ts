import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLimitKey, LIMITS, makeLimits, OTHER_BOUNDS, type Limit } from '../../src/core/limits.ts'

test('LIMITS has every bound of docs/spec/semantics 6 with its default', () => {
  const expected = {
    'addresses-per-name': 10_000,
    'names-per-wildcard': 10_000,
    'wildcard-names': 2_000_000,
    'wildcard-names-per-endpoint': 200_000,
    'names-per-address': 10_000,
    'pairs-per-endpoint': 100_000,
    pairs: 1_000_000,
    'reply-sockets': 1_024,
    'dynamic-identities': 4_096,
    'dynamic-identities-per-endpoint': 512,
    'static-identities': 1_000_000,
    selectors: 200_000,
    endpoints: 10_000,
    resources: 200_000,
    peers: 20_000,
    'policy-entries': 16_384,
    'connections-per-endpoint': 65_536,
    connections: 524_288,
    'queries-in-flight': 65_536,
    'queries-in-flight-per-client': 4_096,
    'tcp-connections': 4_096,
    'tcp-connections-per-client': 64,
    'queries-per-tcp-connection': 256,
    'tcp-idle-timeout': 10_000,
    'tcp-message-timeout': 5_000,
    'udp-message': 4_096,
  }
  assert.deepEqual(makeLimits(), expected)
})

test('LIMITS and OTHER_BOUNDS are consistent: default in range, words for people', () => {
  const all: readonly (readonly [string, Limit])[] = [
    ...Object.entries(LIMITS),
    ...Object.entries(OTHER_BOUNDS),
  ]
  for (const [key, limit] of all) {
    assert.ok(limit.min <= limit.default && limit.default <= limit.max, key)
    assert.ok(limit.doc !== '' && limit.atBound !== '', key)
    assert.match(key, /^[a-z-]+(\.[a-z-]+)*$/)
  }
})

test('makeLimits replaces the given keys and no others', () => {
  assert.deepEqual(makeLimits({ pairs: 5 }), { ...makeLimits(), pairs: 5 })
})

test('isLimitKey knows own keys only', () => {
  assert.ok(isLimitKey('pairs'))
  assert.ok(!isLimitKey('toString'))
  assert.ok(!isLimitKey('upstreams.attempts'))
})
