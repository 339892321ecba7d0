// An object gives the same configuration as a file with the same keys: the same values and faults, without lines.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stringify } from 'yaml'
import type { Config } from '../../src/config/config.ts'
import { configFromObject, parseConfig } from '../../src/config/load.ts'
import { InvalidInputError } from '../../src/core/errors.ts'

const nobody = (): boolean => false

/** The faults without their places. Only the faults of a text have lines. */
function withoutPlaces(config: Config): unknown {
  return JSON.parse(
    JSON.stringify({ ...config, file: '' }, (key, value: unknown) =>
      key === 'position' ? undefined : value,
    ),
  )
}

function faultsOf(read: () => unknown): readonly string[] {
  try {
    read()
    return []
  } catch (error) {
    assert.ok(error instanceof InvalidInputError)
    return error.faults.map(({ message }) => message).sort()
  }
}

const GOOD: readonly (readonly [given: unknown, reason: string])[] = [
  [{}, 'every key has a default'],
  [null, 'nothing is as an empty file'],
  [{ listeners: [{ address: '::1', port: 0 }, { port: 0 }] }, 'two free ports'],
  [{ dns: { hold: { limit: '2s' }, 'min-ttl': '5s' }, limits: { pairs: 1000 } }, 'units as texts'],
  [{ upstreams: { servers: ['9.9.9.9:53'], trusted: ['10.0.0.0/8'] } }, 'addresses, prefixes'],
  [{ audit: { endpoints: [{ matchLabels: { app: 'a' } }] } }, 'a selector'],
]

test('configFromObject gives the same configuration as a file with the same keys', () => {
  for (const [given, reason] of GOOD) {
    const config = configFromObject(given, 'config', nobody)
    const parsed = parseConfig(stringify(given), 'file.yaml', nobody)
    assert.deepEqual(withoutPlaces(config), withoutPlaces(parsed), reason)
    assert.equal(config.file, 'config')
    assert.ok(Object.isFrozen(config))
  }
})

test('configFromObject does not change the object', () => {
  const given = { listeners: [{ port: 0 }] }
  configFromObject(given, 'config', nobody)
  given.listeners[0] = { port: 1 }
  assert.equal(given.listeners[0].port, 1)
})

const BAD: readonly (readonly [given: unknown, reason: string])[] = [
  [{ listener: [] }, 'an unknown key, with the one that was meant'],
  [{ dns: { hold: { limit: 5 } } }, 'a duration without unit'],
  [{ listeners: [{ port: 70_000 }], metrics: { port: -1 } }, 'two faults at once'],
  [{ upstreams: { servers: ['nine'] } }, 'no address'],
  [{ dns: { 'min-ttl': '2h', 'max-ttl': '1h' } }, 'two keys that contradict each other'],
  [[], 'a list instead of a mapping'],
]

test('configFromObject finds the faults that a file with the same keys has', () => {
  for (const [given, reason] of BAD) {
    const faults = faultsOf(() => configFromObject(given, 'config', nobody))
    assert.deepEqual(
      faults,
      faultsOf(() => parseConfig(stringify(given), 'f', nobody)),
      reason,
    )
    assert.ok(faults.length > 0, reason)
  }
})

test('configFromObject names the path of a fault, because an object has no lines', () => {
  const rows: readonly (readonly [given: unknown, message: string])[] = [
    [
      { listeners: [{ port: 'x' }] },
      'config: listeners[0].port: found "x", expected a whole number from 0 to 65535',
    ],
    [
      { listeners: [{ port: 53 }, { port: 53 }] },
      'config: listeners[1]: found the same address and port as in another listener',
    ],
    [
      { listeners: [{ address: '127.0.0.1', port: 53 }], upstreams: { servers: ['127.0.0.1:53'] } },
      "config: upstreams.servers: found 127.0.0.1:53, our own listener, expected a server that isn't namegate itself",
    ],
    [{ log: () => 1 }, 'config: log: found a function, expected plain data'],
  ]
  for (const [given, message] of rows) {
    assert.throws(
      () => configFromObject(given, 'config', () => true),
      new InvalidInputError([
        { position: { file: 'config', line: 0, column: 0 }, message: message.slice(8) },
      ]),
    )
    assert.throws(() => configFromObject(given, 'config', () => true), { message })
  }
})
