// Broken policies: every document of test/policy/corpus with all its faults, as `=> line:column: path: what was found and expected`.
// Hostile documents are made here. No document crashes the loader, and none gives a policy.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadPolicies, POLICY_TEXT_MAX } from '../../src/policy/load/load.ts'

const FOLDER = new URL('./corpus/', import.meta.url)

interface Broken {
  readonly text: string
  readonly faults: readonly string[]
}

function readCorpus(file: string): readonly Broken[] {
  const found: Broken[] = []
  let [text, faults]: [string, string[]] = ['', []]
  for (const line of readFileSync(new URL(file, FOLDER), 'utf8').split('\n')) {
    if (line.startsWith('=> ')) {
      faults.push(line.slice(3))
    } else if (faults.length > 0) {
      found.push({ text, faults })
      ;[text, faults] = [`${line}\n`, []]
    } else {
      text += `${line}\n`
    }
  }
  assert.equal(text, '\n', `${file} ends with a fault`)
  return found
}

function faultsOf(text: string): readonly string[] {
  const { policies, faults, warnings } = loadPolicies(text, 'f')
  assert.deepEqual([policies, warnings], [[], []], 'a broken document gives no policy')
  return faults.map(({ position: { line, column }, message }) => `${line}:${column}: ${message}`)
}

const files = readdirSync(FOLDER).filter((name) => name.endsWith('.txt'))
const corpus = files.map((file) => ({ file, rows: readCorpus(file) }))

for (const { file, rows } of corpus) {
  test(`loadPolicies reports the fault and its place for each of ${rows.length} broken documents in ${file}`, () => {
    for (const { text, faults } of rows) assert.deepEqual(faultsOf(text), faults, text)
  })
}

test('the corpus has at least 150 different documents', () => {
  const texts = corpus.flatMap(({ rows }) => rows.map(({ text }) => text))
  assert.ok(texts.length >= 150)
  assert.equal(new Set(texts).size, texts.length)
})

test('loadPolicies with unsupported-fields: warn opens nothing for any document of the corpus', () => {
  let warned = 0
  for (const { text } of corpus.flatMap(({ rows }) => rows)) {
    const { policies, warnings } = loadPolicies(text, 'f', { unsupportedFields: 'warn' })
    if (policies.length > 0) assert.ok(warnings.length > 0, text)
    for (const { rules, defaultDeny } of policies) {
      warned++
      assert.ok(defaultDeny, text)
      for (const { action, peers, toPorts } of rules) {
        assert.equal(action, 'allow', 'a deny rule is refused in any case')
        const isClosed = toPorts?.every(
          ({ ports, named = [] }) => ports.length + named.length === 0,
        )
        const few = peers.kind === 'selectors' ? peers.selectors : undefined
        // One row has another entity beside the unsupported one.
        const isWritten = few?.every((peer) => peer.kind === 'entity' && peer.entity === 'world')
        assert.ok(isClosed === true || isWritten === true, text)
      }
    }
  }
  assert.ok(warned > 15, `${warned} documents were loaded`)
})

const HEADER = 'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: p }\n'
const SPEC = 'spec: { endpointSelector: {}, egress: [{}] }\n'

function bomb(levels: number): string {
  const lines = ['l0: &l0 [x, x, x, x, x, x, x, x, x, x]']
  for (let i = 1; i < levels; i++) {
    lines.push(`l${i}: &l${i} [${`*l${i - 1}, `.repeat(9)}*l${i - 1}]`)
  }
  return `${lines.join('\n')}\n`
}

const HOSTILE: readonly (readonly [why: string, text: string, fault: RegExp])[] = [
  ['a YAML bomb', bomb(9) + HEADER + SPEC, /found aliases for more than 10000 values/],
  ['an anchor inside itself', `${HEADER}spec: &a [*a]\n`, /nested deeper than 64|no such anchor/],
  [
    'two anchors inside each other',
    `${HEADER}spec: &a { b: &b [*a, *b] }\n`,
    /nested deeper|no such/,
  ],
  ['lists a thousand deep', `${HEADER}spec: ${'['.repeat(1000)}\n`, /nested deeper than 64/],
  ['mappings a thousand deep', `${HEADER}spec: ${'{a: '.repeat(1000)}\n`, /nested deeper than 64/],
  ['a file of 10 MB', `# ${'x'.repeat(10_000_000)}\n${HEADER}${SPEC}`, /expected at most 8388608/],
  ['a duplicate key', `${HEADER}${SPEC}spec: {}\n`, /found the key "spec" twice, first on line 4/],
  ['a prototype as a key', `${HEADER}${SPEC}__proto__: {}\n`, /unknown field __proto__/],
  [
    'a constructor as a key',
    `${HEADER}spec: { constructor: {} }\n`,
    /unknown field spec.constructor/,
  ],
  ['octets of zero', `${HEADER}spec: "\0"\n`, /found|Unexpected|expected/],
]

for (const [why, text, fault] of HOSTILE) {
  test(`loadPolicies refuses ${why} with a reason`, () => {
    const faults = faultsOf(text)
    assert.ok(faults.length > 0)
    assert.match(faults.join('\n'), fault)
  })
}

test('loadPolicies loads a file of the greatest length', () => {
  const text = HEADER + SPEC
  const { policies } = loadPolicies(text + '#'.padEnd(POLICY_TEXT_MAX - text.length, 'x'), 'f')
  assert.equal(policies.length, 1)
})
