import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatFault } from '../../src/core/errors.ts'
import {
  ALIAS_VALUES_MAX,
  DEPTH_MAX,
  parseYaml,
  parseYamlDocument,
} from '../../src/documents/yaml-source.ts'

function faultsOf(text: string): readonly string[] {
  const { documents, faults } = parseYaml(text, 'y')
  if (faults.length > 0 && !text.includes('---')) assert.deepEqual(documents, [])
  return faults.map((fault) => formatFault(fault).replace(/^y:/, ''))
}

/** Values of a text without faults, as JSON. */
function valuesOf(text: string): string {
  assert.deepEqual(faultsOf(text), [])
  return JSON.stringify(parseYaml(text, 'y').documents.map(({ value }) => value))
}

test('parseYaml gives plain values by the core schema of YAML 1.2', () => {
  const rows: readonly (readonly [text: string, json: string, why: string])[] = [
    ['', '[null]', 'an empty text is one empty document'],
    ['# c\n', '[null]', 'so is a comment'],
    ['---\n---\na\n', '[null,"a"]', 'several documents'],
    [
      'a: 1\nb: 0x4e47\nc: yes\nd: true\ne: ~\nf: 010',
      '[{"a":1,"b":20039,"c":"yes","d":true,"e":null,"f":10}]',
      'scalars',
    ],
    ['1: a\ntrue: b\n0x1: c\n', '[{"1":"a","true":"b","0x1":"c"}]', 'keys are their own spelling'],
    ['x: &a [1]\ny: *a\nz: *a', '[{"x":[1],"y":[1],"z":[1]}]', 'aliases'],
    ['x: &a 1\ny: &a 2\nz: *a', '[{"x":1,"y":2,"z":2}]', 'the last anchor before counts'],
    [
      '__proto__: { x: 1 }\nconstructor: 2',
      '[{"__proto__":{"x":1},"constructor":2}]',
      'no key is special',
    ],
    ['a: 2026-01-01', '[{"a":"2026-01-01"}]', 'a date is a text'],
    ['a:\r\n  - b\r\n', '[{"a":["b"]}]', 'lines of Windows'],
    ['\ufeffa: 1', '[{"a":1}]', 'a byte order mark'],
  ]
  for (const [text, json, why] of rows) assert.equal(valuesOf(text), json, why)
})

test('parseYaml gives mappings without a prototype', () => {
  const value = parseYaml('__proto__: { polluted: 1 }\n', 'y').documents[0]?.value
  assert.equal(Object.getPrototypeOf(value), null)
  assert.equal(Reflect.get({}, 'polluted'), undefined)
})

test('positionOf finds values, keys and the nearest ancestor of a missing path', () => {
  const text = 'top:\n  - b: 1\n  - c:\n    dd: x\nlist: [a, {e: f}]\nx: &n { y: 1 }\nz: *n\n'
  const [document] = parseYaml(text, 'y').documents
  const rows: readonly (readonly [
    path: readonly (string | number)[],
    value: string,
    key: string,
    why: string,
  ])[] = [
    [[], '1:1', '1:1', 'the document'],
    [['top'], '2:3', '1:1', 'a list'],
    [['top', 0], '2:5', '2:5', 'an item has no key'],
    [['top', 0, 'b'], '2:8', '2:5', 'a scalar'],
    [['top', 1, 'c'], '3:5', '3:5', 'a value left out stands at its key'],
    [['top', 1, 'dd'], '4:9', '4:5', 'the next line'],
    [['list', 1, 'e'], '5:15', '5:12', 'flow style'],
    [['z', 'y'], '6:12', '6:9', 'behind an alias'],
    [['zz'], '1:1', '1:1', 'no such key'],
    [['top', 9], '2:3', '2:3', 'no such item'],
    [['top', 0, 'b', 'c'], '2:8', '2:8', 'below a scalar'],
  ]
  for (const [path, value, key, why] of rows) {
    const place = (part: 'key' | 'value'): string => {
      const { line, column } = document?.positionOf(path, part) ?? assert.fail()
      return `${line}:${column}`
    }
    assert.deepEqual([place('value'), place('key')], [value, key], why)
  }
})

const FAULTS: readonly (readonly [why: string, text: string, faults: readonly string[]])[] = [
  ['a key twice', 'a: 1\nb: 2\na: 3\n', ['3:1: found the key "a" twice, first on line 1']],
  [
    'a key twice in another spelling',
    'a: 1\n"a": 2\n',
    ['2:1: found the key "a" twice, first on line 1'],
  ],
  ['an open quote', 'a: "x\n', ['2:1: found no " at the end of a text that begins with it']],
  ['a tab as indentation', 'a:\n\t- b\n', ['2:1: found a tab, expected spaces']],
  [
    'no blank after a colon',
    'a:b\nc: 1\n',
    ['1:1: found text over several lines in place of a key, expected a blank after its colon'],
  ],
  [
    'a key too far to the left',
    'a:\n  b: 1\n c: 2\n',
    ['3:1: found a key in another column, expected the same indentation as the keys before it'],
  ],
  [
    'an open list',
    'a: [1, 2\nb: 3\n',
    [
      '2:1: found no ] at the end of a list that begins with [, or a line of it without indentation',
    ],
  ],
  ['an own tag', 'a: !foo 1\n', ['1:4: Unresolved tag: !foo']],
  [
    'an alias of nothing',
    'a: *b\n',
    ['1:4: found the alias *b, but no such anchor: write a text that begins with * in quotes'],
  ],
  [
    'an alias before its anchor',
    'a: *b\nb: &b 1\n',
    ['1:4: found the alias *b, but no such anchor: write a text that begins with * in quotes'],
  ],
  [
    'an alias inside its own anchor',
    'a: &a [*a]\n',
    [`1:7: found lists or mappings nested deeper than ${DEPTH_MAX}`],
  ],
  ['a merge key', '<<: { a: 1 }\n', ['1:1: found a merge key (<<): not supported']],
  ['a list as a key', '? [a]\n: 1\n', ['1:3: found a key that is no text, expected a text']],
  ['nothing as a key', '~: 1\n', ['1:1: found a key that is no text, expected a text']],
  ['YAML 1.1', '%YAML 1.1\n---\na: yes\n', ['1:1: found YAML 1.1, expected YAML 1.2']],
  [
    'an octet 0',
    'a\u0000: [\n',
    [
      '2:1: found no ] at the end of a list that begins with [, or a line of it without indentation',
    ],
  ],
]

for (const [why, text, faults] of FAULTS) {
  test(`parseYaml refuses ${why}`, () => assert.deepEqual(faultsOf(text), faults))
}

test('parseYaml keeps the good documents beside a bad one', () => {
  const { documents, faults } = parseYaml('a: 1\n---\nb: [\n---\nc: 3\n', 'y')
  assert.equal(faults.length > 0, true)
  assert.deepEqual(documents[0]?.value, Object.assign(Object.create(null), { a: 1 }))
})

test('parseYaml refuses nesting beyond its bound, however deep, without running out of stack', () => {
  for (const depth of [DEPTH_MAX + 2, 1_000, 100_000]) {
    for (const text of ['['.repeat(depth), '- '.repeat(depth), '{a: '.repeat(depth)]) {
      assert.match(faultsOf(text)[0] ?? '', /nested deeper than 64$/, text.slice(0, 8))
    }
  }
  assert.equal(faultsOf(`${'['.repeat(DEPTH_MAX)}${']'.repeat(DEPTH_MAX)}`).length, 0)
})

test('parseYaml refuses aliases that stand for too many values', () => {
  const levels = Array.from({ length: 9 }, (_, i) =>
    i === 0 ? 'a0: &a0 [x, x, x, x, x, x, x, x]' : `a${i}: &a${i} [${`*a${i - 1}, `.repeat(8)}]`,
  )
  const faults = faultsOf(levels.join('\n'))
  assert.equal(faults.length, 1)
  assert.match(
    faults[0] ?? '',
    new RegExp(`found aliases for more than ${ALIAS_VALUES_MAX} values$`),
  )
})

test('parseYamlDocument refuses a second document', () => {
  const { document, faults } = parseYamlDocument('a: 1\n---\n', 'y')
  assert.equal(document, undefined)
  assert.equal(faults.length, 1)
})

test('parseYaml never throws, whatever the text', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      'a:',
      '- ',
      '[',
      ']',
      '{',
      '}',
      '&a ',
      '*a',
      '? ',
      ': ',
      '|',
      '>',
      '"',
      "'",
      '#',
      '\n',
      '  ',
      '---\n',
      '...',
      '!',
      '%',
      '<<',
      '~',
      '1',
      '\t',
    ),
    fc.string({ unit: 'binary', maxLength: 3 }),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const { documents, faults } = parseYaml(pieces.join(''), 'y')
      assert.ok(documents.length > 0 || faults.length > 0)
      for (const { position } of faults) assert.ok(position.line > 0 && position.column > 0)
    }),
    { numRuns: 3_000 },
  )
})
