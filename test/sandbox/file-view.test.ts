import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileViewFault, hiddenPath } from '../../src/sandbox/file-view.ts'

const TMP = join('/tmp', 'x')

test('fileViewFault reports a view without the working folder', () => {
  const rows: readonly (readonly [
    why: string,
    hidden: string,
    hasPrivateTmp: boolean,
    folder: string,
    fault: RegExp | undefined,
  ])[] = [
    ['another folder', '/srv/a/.ssh', false, '/srv/a/work', undefined],
    [
      'the folder itself',
      '/srv/a',
      false,
      '/srv/a',
      /^--hide \/srv\/a: the working folder is in it$/,
    ],
    ['a parent', '/srv', false, '/srv/a/work', /^--hide \/srv: /],
    ['the root', '/', false, '/srv', /^--hide \/: /],
    ['a name that begins alike', '/srv/a', false, '/srv/ab', undefined],
    ['a private /tmp', '/nowhere', true, '/srv', undefined],
    ['in /tmp', '/nowhere', true, TMP, /^--private-tmp: the working folder is in \/tmp$/],
    ['in /tmp without --private-tmp', '/nowhere', false, TMP, undefined],
  ]
  for (const [why, hidden, hasPrivateTmp, folder, fault] of rows) {
    const view = { hidden: [hidden], isReadOnly: false, hasPrivateTmp, locked: [] }
    const found = fileViewFault(view, folder)
    if (fault === undefined) assert.equal(found, undefined, why)
    else assert.match(found ?? '', fault, why)
  }
})

test('hiddenPath follows links, and returns undefined for a missing path', () => {
  assert.equal(hiddenPath('/proc/self/../version'), '/proc/version')
  assert.equal(hiddenPath('/nowhere/at/all'), undefined)
})
