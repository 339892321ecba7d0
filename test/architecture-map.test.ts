// Every path that ARCHITECTURE.md, CONTRIBUTING.md, the READMEs of directories and the pages of docs/ name exists, and ARCHITECTURE.md
// names every directory of src.

import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { test } from 'node:test'

/** Top folders of the repository. Text in backticks that begins with one of them is a path. */
const TOP = /^(src|test|docs|scripts|deploy|demo|bin|config)\//
/** A file name of this repository, as in the README of a directory. */
const FILE = /^[\w.-]+(\/[\w.-]+)*\.(ts|c|h|mjs|md)$/

function listFolders(folder: string): string[] {
  const here = readdirSync(folder, { withFileTypes: true })
  const below = here.filter((entry) => entry.isDirectory())
  const hasFiles = here.some((entry) => entry.isFile())
  return [
    ...(hasFiles ? [folder] : []),
    ...below.flatMap(({ name }) => listFolders(join(folder, name))),
  ]
}

function listPages(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return listPages(path)
    return path.endsWith('.md') ? [path] : []
  })
}

/** `text` for each path in backticks and `target` for each relative link, outside of code blocks. */
function namedPaths(
  page: string,
): readonly (readonly [named: string, places: readonly string[]])[] {
  const text = readFileSync(page, 'utf8').replace(/^```[\s\S]*?^```/gm, '')
  const links = Array.from(
    text.matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g),
    ([, target = '']) => target,
  )
  const quoted = Array.from(text.matchAll(/`([^`\s]+)`/g), ([, path = '']) => path)
  const fromTop = quoted.filter(
    (path) => TOP.test(path) && !/[*<>…{]|[A-Z]{4}/.test(path.replace(/README\.md$/, '')),
  )
  const inSrc = page.startsWith('src/')
    ? quoted.filter((path) => FILE.test(path) && !TOP.test(path))
    : []
  return [
    ...links.map((path) => [path, [join(dirname(page), path)]] as const),
    ...fromTop.map((path) => [path, [path]] as const),
    ...inSrc.map((path) => [path, [join(dirname(page), path), join('src', path)]] as const),
  ]
}

const pages = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  ...listPages('docs'),
  ...listPages('src'),
  ...listPages('test'),
]

test('every path that a page names exists', () => {
  const missing = pages.flatMap((page) =>
    namedPaths(page).flatMap(([named, places]) =>
      places.some((place) => existsSync(normalize(place))) ? [] : [`${page}: ${named}`],
    ),
  )
  assert.deepEqual(missing, [])
})

test('ARCHITECTURE.md has a line for every directory of src', () => {
  const map = readFileSync('ARCHITECTURE.md', 'utf8')
  const rows = map.split('\n').filter((line) => line.startsWith('| `src/'))
  assert.deepEqual(
    listFolders('src').filter(
      (folder) => folder !== 'src' && !rows.some((row) => row.includes(`\`${folder}/\``)),
    ),
    [],
  )
})
