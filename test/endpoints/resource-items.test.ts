// A resources file that is read again and again while it is edited. The result equals a read of the whole file.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatFault } from '../../src/core/errors.ts'
import { ResourceItems } from '../../src/endpoints/resource-items.ts'
import { parseResources, type ResourcesFile } from '../../src/endpoints/resources.ts'

const ENTRIES = [
  '  - { name: NAME, addresses: [10.0.0.1], labels: { app: db } }\n',
  '  - name: NAME\n    addresses: [192.0.2.0/24, "2001:db8::/64"]\n    labels:\n      app: web\n',
  '  - name: NAME # with words\n    # and more of them\n    addresses:\n      - 10.0.0.2\n\n',
  '  -   name: "NAME"\n      addresses: [10.0.0.3]\n      ports: { web: 80/TCP }\n',
] as const

function plain({ resources, faults }: ResourcesFile): object {
  return {
    resources: resources.map(({ position: { file, line, column }, ...rest }) => {
      return { ...rest, at: `${file}:${line}:${column}` }
    }),
    faults: faults.map(formatFault),
  }
}

/** Without faults of repeated names, which a reader of entries does not look for. */
function whole(text: string): object {
  const read = parseResources(text, 'r.yaml')
  const faults = read.faults.filter(({ message }) => !message.includes(' again, first at '))
  return { ...plain({ ...read, faults }), isRepeated: faults.length < read.faults.length }
}

test('ResourceItems keeps the records of entries that did not change', () => {
  const items = new ResourceItems('r.yaml')
  const texts = Array.from({ length: 40 }, (_, i) => entry(i))
  const first = items.parse(`resources:\n${texts.join('')}`)
  assert.deepEqual(first.faults, [])
  const second = items.parse(`resources:\n${texts.with(7, entry(99)).join('')}`)
  const kept = second.resources.filter((record) => first.resources.includes(record))
  assert.deepEqual([second.resources.length, kept.length >= 37], [40, true], `${kept.length} kept`)
  const third = items.parse(`# a comment\nresources:\n${texts.toSpliced(20, 1).join('')}`)
  assert.equal(third.resources.length, 39)
  assert.equal(
    third.resources[38]?.position.line,
    lastLine(`# a comment\nresources:\n${texts.toSpliced(20, 1).join('')}`),
  )
})

test('ResourceItems reports the same fault of an entry as a read of the whole file, and continues from the last good text', () => {
  const items = new ResourceItems('r.yaml')
  const good = `resources:\n${[0, 1, 2, 3, 4].map(entry).join('')}`
  items.parse(good)
  const rows: readonly (readonly [from: string, to: string])[] = [
    ['10.0.0.2', '10.0.0.256'],
    ['[192.0.2.0/24', '[192.0.2.1/24'],
    ['labels:\n      app: web', 'lables:\n      app: web'],
    ['app: web', '"cidr:x": web'],
    ['    addresses:\n      - 10.0.0.2\n', ''],
  ]
  for (const [from, to] of rows) {
    const text = good.replace(from, to)
    assert.notEqual(text, good)
    const { faults } = items.parse(text)
    assert.deepEqual(
      faults.map(formatFault),
      parseResources(text, 'r.yaml').faults.map(formatFault),
    )
    assert.equal(items.parse(good).resources.length, 5)
  }
})

test('ResourceItems equals a read of the whole text, through random edits', () => {
  const noise = fc.constantFrom(
    '',
    ' ',
    '\n',
    '- ',
    '#',
    '"',
    "'",
    ':',
    '&a ',
    '*a',
    '|',
    '[',
    '}',
    '---\n',
    'x',
    '\t',
    '  - { name: z, addresses: [10.9.9.9] }\n',
  )
  const edit = fc.oneof(
    fc.record({
      kind: fc.constant('entry' as const),
      at: fc.nat(30),
      gone: fc.nat(2),
      come: fc.array(fc.nat(99), { maxLength: 2 }),
    }),
    fc.record({
      kind: fc.constant('text' as const),
      at: fc.nat(2000),
      gone: fc.nat(3),
      come: noise,
    }),
  )
  fc.assert(
    fc.property(fc.nat(12), fc.array(edit, { maxLength: 8 }), (count, edits) => {
      const items = new ResourceItems('r.yaml')
      let entries = Array.from({ length: count }, (_, i) => entry(i))
      for (const { kind, at, gone, come } of edits) {
        let text = `resources:\n${entries.join('')}`
        if (kind === 'entry') {
          entries = entries.toSpliced(at % (entries.length + 1), gone, ...come.map(entry))
          text = `resources:\n${entries.join('')}`
        } else {
          const place = at % text.length
          text = text.slice(0, place) + come + text.slice(place + gone)
        }
        const expected = whole(text)
        const read = plain(items.parse(text))
        if ('isRepeated' in expected && expected.isRepeated === true) continue
        compare(read, expected, text)
      }
    }),
    { numRuns: 300 },
  )
})

/** Faults of a cut entry can have other words. Compares only if there are any. */
function compare(read: object, expected: object, text: string): void {
  const { faults, resources } = { faults: [], resources: [], ...read }
  const want = { faults: [], resources: [], ...expected }
  assert.equal(
    faults.length > 0,
    want.faults.length > 0,
    JSON.stringify([text, faults, want.faults]),
  )
  assert.deepEqual(resources, want.resources, JSON.stringify(text))
}

function entry(i: number): string {
  return (ENTRIES[i % ENTRIES.length] ?? '').replace('NAME', `vm-${i}`)
}

function lastLine(text: string): number {
  return text.slice(0, text.lastIndexOf('\n  - ') + 1).split('\n').length
}
