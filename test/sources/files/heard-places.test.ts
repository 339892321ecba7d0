import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, test } from 'node:test'
import { heardPlaces, type Heard } from '../../../src/sources/files/heard-places.ts'

const top = realpathSync(mkdtempSync(join(tmpdir(), 'namegate-heard-')))
after(() => rmSync(top, { recursive: true }))

/** Places below the folder of this test, as `place: what`. */
function placesOf(...paths: readonly string[]): readonly string[] {
  const places = heardPlaces(paths.map((path) => join(top, path))) ?? new Map<string, Heard>()
  return [...places]
    .filter(([folder]) => folder.startsWith(top))
    .map(([folder, heard]) => {
      return `${relative(top, folder) || '.'}: ${heard === 'all' ? 'all' : [...heard].sort().join(' ')}`
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

const ROWS: readonly (readonly [path: string, places: readonly string[], reason: string])[] = [
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
  ['gone/x.yaml', ['.: gone'], 'the first thing that is not there'],
  [
    'current/policies',
    ['.: current', 'v1/policies: all', 'v1: policies'],
    'a link on the way, and what it leads to',
  ],
  [
    'mounted/c.yaml',
    ['mounted/..2024: c.yaml', 'mounted: ..data c.yaml'],
    'a mounted ConfigMap, whose link is swapped',
  ],
  ['circle', ['.: circle'], 'links that lead in circles end'],
]

for (const [path, places, reason] of ROWS) {
  test(`heardPlaces of ${path}: ${reason}`, () => {
    assert.deepEqual(placesOf(path), [...places].sort())
  })
}

test('heardPlaces gives up on more folders than anybody has for policies', () => {
  for (let i = 0; i < 300; i++) mkdirSync(join(top, 'many', String(i)), { recursive: true })
  assert.equal(heardPlaces([join(top, 'many')]), undefined)
})
