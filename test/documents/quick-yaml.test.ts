// The quick reader against the whole one: what it reads at all, it reads alike.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { parseYamlDocument } from '../../src/documents/yaml-source.ts'
import { readQuickYaml } from '../../src/documents/quick-yaml.ts'

/** The whole reader's value; undefined when it finds a fault. */
function whole(text: string): unknown {
  const { document, faults } = parseYamlDocument(text, 'x.yaml')
  return faults.length > 0 ? undefined : document?.value
}

test('readQuickYaml reads what resources are mostly written like', () => {
  const rows: readonly (readonly [reason: string, text: string])[] = [
    ['flow', '- { name: a, addresses: [10.0.0.1], labels: { app: db, k8s:team: x } }'],
    ['JSON', '- {"name":"a","addresses":["::1"],"labels":{"app":"db"}}'],
    [
      'block',
      '  - name: vm-1\n    addresses:\n      - 10.0.0.1/32\n      - "fd00::/8"\n    labels:\n      app: db',
    ],
    ['lists as far in as their key', '- name: a\n  addresses:\n  - 10.0.0.1\n  labels: {}\n'],
    [
      'comments and blank lines',
      '# one\n\n  # two\na: b\n\n# three\nc:\n    # four\n  - d\n#five\n  - e\n\n# six\n',
    ],
    ['blanks at the end', '- name: a  \n  ports: { web: 8080 }   \n\n'],
    ['an address with colons', '- name: a\n  addresses: [2001:db8::1, fd00:1::/64]'],
  ]
  for (const [reason, text] of rows) {
    const value = readQuickYaml(text)
    assert.notEqual(value, undefined, reason)
    assert.deepEqual(value, whole(text), reason)
  }
})

test('readQuickYaml leaves to the whole reader what may mean something else', () => {
  const texts = [
    'a: b # c',
    'a: &x b',
    'a: *x',
    'a: !t b',
    'a: |\n  b',
    'a:\n',
    'a: True',
    'true: a',
    'a: ~',
    'a: 1.5',
    'a: 0x10',
    'a: 010',
    'a: "\\n"',
    "a: 'it''s'",
    'a: b\na: c',
    'a: b c',
    'a: [b',
    'a: [b,]',
    'a: {b}',
    'a: fd00::',
    '"a": b: c',
    '',
    '\n',
    '- a\nb: c',
    'a: b\n- c',
    'a: b\n  c: d',
    'a:\n b: c\n  d: e',
    '\ta: b',
    'a:\tb',
    'null: a',
    '? a',
    'a: {"b":c, d:e}',
    '--- a',
    'a: -1',
    `a: ${'['.repeat(40)}${']'.repeat(40)}`,
  ]
  for (const text of texts) assert.equal(readQuickYaml(text), undefined, JSON.stringify(text))
})

const word = fc.constantFrom(
  'app',
  'k8s:app',
  'a',
  'true',
  '10.0.0.1',
  'fd00::/8',
  '::',
  '1',
  '1e3',
  'no',
  'x y',
  '',
  'b:',
  '0',
  '1.2',
  'b\u00a0',
)
const plain = fc.constantFrom(
  'app',
  'k8s:io.kubernetes.pod.namespace',
  'a',
  'shop-1',
  '10.0.0.1',
  'b_c',
)
const scalar = fc.oneof(
  { weight: 20, arbitrary: plain },
  word,
  fc.integer({ min: -5, max: 70000 }),
  fc.constant(null),
  fc.boolean(),
)
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 4 },
    scalar,
    fc.array(tie('any'), { maxLength: 3 }),
    fc.dictionary(fc.oneof({ weight: 9, arbitrary: plain }, word), tie('any'), { maxKeys: 3 }),
  ),
})).any

test('readQuickYaml gives what the whole reader gives, or nothing, for written and for mutated texts', () => {
  let read = 0
  const check = (text: string): void => {
    const quick = readQuickYaml(text)
    if (quick === undefined) return
    read++
    assert.deepEqual(quick, whole(text), JSON.stringify(text))
  }
  const style = fc.record({
    collectionStyle: fc.constantFrom('block', 'flow', 'any'),
    indent: fc.integer({ min: 1, max: 4 }),
    indentSeq: fc.boolean(),
  } as const)
  const noise = fc.constantFrom(
    ' ',
    '\n',
    '-',
    ':',
    ',',
    '{',
    '}',
    '[',
    ']',
    '"',
    "'",
    '#',
    '\t',
    'a',
    '0',
    '- ',
    ': ',
    '\n  ',
    '%',
    '&',
    '*',
  )
  const edits = fc.array(fc.tuple(fc.nat(400), fc.nat(2), noise), { maxLength: 3 })
  fc.assert(
    fc.property(
      fc.oneof(value, fc.array(value, { maxLength: 3 })),
      style,
      edits,
      (tree, options, mutations) => {
        let text = stringify(tree, { ...options, lineWidth: 0 })
        check(text)
        check(JSON.stringify(tree))
        for (const [at, gone, come] of mutations) {
          const place = at % (text.length + 1)
          text = text.slice(0, place) + come + text.slice(place + gone)
        }
        check(text)
      },
    ),
    { numRuns: 4000 },
  )
  assert.ok(read > 300, `${read} texts were read quickly`)
})
