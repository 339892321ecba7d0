// The JSON reader of namegate-cni and JSON.parse accept the same texts. The tests use the command GC, because it reads its whole input and
// needs nothing else.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'node:test'
import { callPlugin, canRunPlugin, refusalOf } from '../support/cni/plugin.ts'

const skip = canRunPlugin() ?? false
const RUNS = 300
const DEPTH_MOST = 64
/** One changed digit can turn one of them into another. */
const SUPPORTED = new Set<unknown>(['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'])
/** Texts that a change inserts. */
const PARTS = '{}[]",:\\/utfn0123456789-+.eE \n\t\u0001x'
const DECODE = 6
const VERSION = 1

/** The exit code that GC must have for a text, according to JSON.parse. */
function expectedCode(text: string): number {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return DECODE
    if (depthOf(value) > DEPTH_MOST) return DECODE
    return 'cniVersion' in value && SUPPORTED.has(value.cniVersion) ? 0 : VERSION
  } catch {
    return DECODE
  }
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

function foundCode(text: string | Buffer): number {
  const output = callPlugin({ command: 'GC', network: text })
  assert.ok(output.code === 0 || output.code === 1, `ended by a signal: ${output.stderr}`)
  return output.code === 0 ? 0 : refusalOf(output).code
}

const document = fc
  .record({ cniVersion: fc.constantFrom('1.1.0', '1.1.1'), prevResult: fc.jsonValue() })
  .chain((value) => fc.constantFrom(JSON.stringify(value), JSON.stringify(value, undefined, '\t ')))

test('json_check takes what JSON.parse takes', { skip }, () => {
  fc.assert(
    fc.property(document, (text) => assert.equal(foundCode(text), expectedCode(text))),
    { numRuns: RUNS },
  )
})

test('json_check refuses what JSON.parse refuses, in texts with one change', { skip }, () => {
  const part = fc.constantFrom(...PARTS.split(''), '\\u12', 'null', '')
  fc.assert(
    fc.property(document, fc.nat(), fc.nat(3), part, (text, place, removed, added) => {
      const at = place % (text.length + 1)
      const changed = text.slice(0, at) + added + text.slice(at + removed)
      assert.equal(foundCode(changed), expectedCode(changed), changed)
    }),
    { numRuns: RUNS },
  )
})

test('namegate-cni ends with an answer for any octets', { skip }, () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (octets) => {
      assert.ok([DECODE, VERSION].includes(foundCode(Buffer.from(octets))))
    }),
    { numRuns: RUNS },
  )
})

for (const [text, why] of [
  ['{"cniVersion":"1.1.0","cniVersion":"0.1.0"}', 'the last of two equal keys counts'],
  [
    '{"cniVersion":"0.1.0","cniVersion":"1.1.0"}',
    'the last of two equal keys counts, the other way',
  ],
  [String.raw`{"cni\u0056ersion":"1.1\u002e0"}`, 'escapes in a key and a value'],
  [String.raw`{"cniVersion":"1.1.0","a":"\ud83d\ude00\ud83d"}`, 'halves of surrogate pairs'],
  ['{"cniVersion":"1.1.0","a":-0.0e+00}', 'a number with all its parts'],
  ['{"cniVersion":"1.1.0","a":01}', 'a number with a leading zero'],
  ['{"cniVersion":"1.1.0","a":1.}', 'a number without a fraction after its point'],
  ['{"cniVersion":"1.1.0",}', 'a comma before the end'],
  ['{"cniVersion":"1.1.0","a":nul}', 'a part of a word'],
  ['\uFEFF{"cniVersion":"1.1.0"}', 'a byte order mark'],
  [' \r\n\t{ "cniVersion" : "1.1.0" } \r\n\t', 'space at every place'],
] as const) {
  test(`json_check judges as JSON.parse: ${why}`, { skip }, () => {
    assert.equal(foundCode(text), expectedCode(text))
  })
}
