// The lines that a user adds to the list of a running `namegate up`, and the note with which the next run finds them.

import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import {
  addedBefore,
  addedTo,
  writeNote,
  type AddedLines,
} from '../../../src/cli/up/added-lines.ts'
import { mkFolder } from '../../support/nodes/daemon-files.ts'

const folder = mkFolder()
after(() => rmSync(folder, { recursive: true, force: true }))

const LIST = join(folder, 'up.allow')
const BOX = { kind: 'netns', value: 'box' } as const
const NONE: AddedLines = { lines: [], faults: [] }

const ROWS: readonly (readonly [why: string, text: string | undefined, added: AddedLines])[] = [
  ['nothing was added', '# head\na.test\n*.b.test:443/tcp\n', NONE],
  ['the user deleted the list', undefined, NONE],
  ['the user emptied the list', '', NONE],
  ['a line at the end', 'a.test\nc.test\n', { lines: ['c.test'], faults: [] }],
  ['a line before the others', 'c.test\na.test\n', { lines: ['c.test'], faults: [] }],
  ['a line with a comment and blanks', ' c.test \t# why\r\n', { lines: ['c.test'], faults: [] }],
  ['a line twice', 'c.test\nc.test\n', { lines: ['c.test'], faults: [] }],
  ['a last line without its end', 'a.test\nc.tes', { lines: ['c.tes'], faults: [] }],
  [
    'a line with a fault beside a good one',
    'no name\nc.test\n',
    {
      lines: ['c.test'],
      faults: ['"no name": found the character " ", expected letters, digits, - _ . or *'],
    },
  ],
]

for (const [why, text, added] of ROWS) {
  test(`addedTo reads a list: ${why}`, () => {
    rmSync(LIST, { force: true })
    if (text !== undefined) writeFileSync(LIST, text)
    assert.deepEqual(addedTo(LIST, ['a.test', '*.b.test:443/tcp']), added)
  })
}

test('addedTo leaves out a list that it cannot read, and says why', () => {
  const file = join(folder, 'file')
  writeFileSync(file, '')
  assert.deepEqual(addedTo(join(file, 'up.allow'), []), NONE, 'no list can be below a file')
  const { lines, faults } = addedTo(folder, [])
  assert.deepEqual(lines, [])
  assert.match(faults.join(), /^the list .*: EISDIR/)
})

test('addedBefore finds the lines of a killed run for the same workload only', () => {
  assert.deepEqual(addedBefore(folder, BOX), NONE, 'no run was killed')
  writeFileSync(LIST, 'a.test\nc.test\n')
  writeNote(folder, { target: BOX, list: LIST, allows: ['a.test'] })
  assert.deepEqual(addedBefore(folder, BOX).lines, ['c.test'])
  assert.deepEqual(addedBefore(folder, { kind: 'interface', value: 'box' }), NONE)
  assert.deepEqual(addedBefore(folder, { kind: 'netns', value: 'box2' }), NONE)
})
