import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatFault } from '../../src/core/errors.ts'
import { OBJECT_DEPTH_MAX, objectDocument } from '../../src/documents/object-source.ts'

test('objectDocument copies plain values, and leaves out undefined ones', () => {
  const given = { a: [1, 'b', null, true], c: { d: undefined, e: {} }, f: undefined }
  const { document, faults } = objectDocument(given, 'config')
  given.a.push(2)
  assert.deepEqual(faults, [])
  assert.equal(JSON.stringify(document.value), '{"a":[1,"b",null,true],"c":{"e":{}}}')
  assert.deepEqual(document.positionOf(['a', 0]), { file: 'config', line: 0, column: 0 })
})

test('objectDocument reads a value once, whatever a getter says later', () => {
  let reads = 0
  const given = {
    get port() {
      return ++reads
    },
  }
  const { document } = objectDocument(given, 'config')
  assert.deepEqual([JSON.stringify(document.value), reads], ['{"port":1}', 1])
})

test('objectDocument keeps a key named __proto__ a key', () => {
  const { document } = objectDocument(JSON.parse('{"__proto__":{"port":1}}'), 'config')
  assert.equal(JSON.stringify(document.value), '{"__proto__":{"port":1}}')
  assert.ok(!('port' in Object(document.value)))
})

test('objectDocument refuses what no text could say, with its path', () => {
  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  const rows: readonly (readonly [value: unknown, fault: string, reason: string])[] = [
    [{ a: () => 1 }, 'x: a: found a function, expected plain data', 'a function'],
    [{ a: [1n] }, 'x: a[0]: found a bigint, expected plain data', 'a bigint'],
    [{ a: Symbol('s') }, 'x: a: found a symbol, expected plain data', 'a symbol'],
    [new Date(0), 'x: found an object of a class, expected plain data', 'a date at the top'],
    [{ a: new Map() }, 'x: a: found an object of a class, expected plain data', 'a map'],
    [{ 'k p': () => 1 }, 'x: ["k p"]: found a function, expected plain data', 'an odd key'],
    [
      circle,
      `x: self.self.self: found lists or mappings nested deeper than ${OBJECT_DEPTH_MAX}, expected plain data`,
      'a circle ends at the bound',
    ],
  ]
  for (const [value, fault, reason] of rows) {
    assert.deepEqual(objectDocument(value, 'x').faults.map(formatFault), [fault], reason)
  }
})
