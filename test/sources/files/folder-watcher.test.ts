import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, test } from 'node:test'
import { watchedPaths, type WatchedEntries } from '../../../src/sources/files/folder-watcher.ts'

const top = realpathSync(mkdtempSync(join(tmpdir(), 'namegate-watched-')))
after(() => rmSync(top, { recursive: true }))

/** Folders below the folder of this test, as `place: what`. */
function foldersOf(...paths: readonly string[]): readonly string[] {
  const folders =
    watchedPaths(paths.map((path) => join(top, path))) ?? new Map<string, WatchedEntries>()
  return [...folders]
    .filter(([folder]) => folder.startsWith(top))
    .map(([folder, entries]) => {
      return `${relative(top, folder) || '.'}: ${entries === 'all' ? 'all' : [...entries].sort().join(' ')}`
    })
    .sort()
}

mkdirSync(join(top, 'policies/below/deep'), { recursive: true })
mkdirSync(join(top, 'policies/.hidden'))
mkdirSync(join(top, 'v1/policies'), { recursive: true })
mkdirSync(join(top, 'mounted/..2024'), { recursive: true })
writeFileSync(join(top, 'policies/a.yaml'), '')
writeFileSync(join(top, 'v1/b.yaml'), '')
writeFileSync(join(top, 'mounted/..2024/c.yaml'), '')
symlinkSync('v1', join(top, 'current'))
symlinkSync('../v1/b.yaml', join(top, 'policies/b.yaml'))
symlinkSync('..2024', join(top, 'mounted/..data'))
symlinkSync('..data/c.yaml', join(top, 'mounted/c.yaml'))
symlinkSync('circle', join(top, 'circle'))

const ROWS: readonly (readonly [path: string, folders: readonly string[], reason: string])[] = [
  ['policies/a.yaml', ['policies: a.yaml'], 'a file by its name'],
  [
    'policies',
    [
      '.: policies',
      'policies/below/deep: all',
      'policies/below: all',
      'policies: all',
      'v1: b.yaml',
    ],
    'a folder, those below, where links in it lead, and itself being swapped',
  ],
  ['gone/x.yaml', ['.: gone'], 'the first missing part'],
  [
    'current/policies',
    ['.: current', 'v1/policies: all', 'v1: policies'],
    'a link on the way, and its target',
  ],
  [
    'mounted/c.yaml',
    ['mounted/..2024: c.yaml', 'mounted: ..data c.yaml'],
    'a mounted ConfigMap, whose link is swapped',
  ],
  ['circle', ['.: circle'], 'links that lead in circles end'],
]

for (const [path, folders, reason] of ROWS) {
  test(`watchedPaths of ${path}: ${reason}`, () => {
    assert.deepEqual(foldersOf(path), [...folders].sort())
  })
}

test('watchedPaths returns nothing for more folders than it watches', () => {
  for (let i = 0; i < 300; i++) mkdirSync(join(top, 'many', String(i)), { recursive: true })
  assert.equal(watchedPaths([join(top, 'many')]), undefined)
})
