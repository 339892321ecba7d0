import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cleanCell, formatPairs, formatTable, TableWriter } from '../../src/cli/table.ts'

test('formatTable makes columns as wide as their widest cell, without blanks at the end', () => {
  const rows = [
    ['a', '1', ''],
    ['grün-und-länger', '22', 'x y'],
  ]
  assert.equal(
    formatTable(['NAME', 'N', 'LAST'], rows),
    'NAME             N   LAST\na                1\ngrün-und-länger  22  x y\n',
  )
  assert.equal(formatTable(['NAME'], []), '', 'no rows, no table')
})

test('TableWriter writes rows as they arrive, with the widths of the first thousand', () => {
  const parts: string[] = []
  const output = { stdout: (text: string) => void parts.push(text), stderr: () => undefined }
  const table = new TableWriter(output, ['A', 'B'])
  for (let i = 0; i < 999; i++) table.add(['xx', 'y'])
  assert.equal(parts.length, 0)
  table.add(['xxx', 'y'])
  assert.equal(parts.length, 1)
  table.add(['longer', 'y'])
  table.end()
  assert.deepEqual(parts.slice(1), ['longer  y\n'])
  assert.ok(parts[0]?.startsWith('A    B\nxx   y\n'))
  assert.equal(table.count, 1001)
})

test('cleanCell shows characters that a terminal would act on', () => {
  const rows: readonly (readonly [text: string, clean: string, reason: string])[] = [
    ['a b', 'a b', 'plain'],
    ['a\u001b[31m', 'a\\u{1b}[31m', 'escape sequence'],
    ['a\nb', 'a\\u{a}b', 'line end'],
    ['a\u202eb', 'a\\u{202e}b', 'right-to-left override'],
    ['ü', 'ü', 'a letter'],
  ]
  for (const [text, clean, reason] of rows) assert.equal(cleanCell(text), clean, reason)
})

test('formatPairs puts values in one column', () => {
  assert.equal(
    formatPairs([
      ['a', '1'],
      ['longer', '2'],
    ]),
    'a:       1\nlonger:  2\n',
  )
})
