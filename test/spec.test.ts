// Every section, heading and id of docs/spec/ that code, tests and documents cite exists there.

import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const DOCUMENTS = ['promises', 'semantics', 'correctness'] as const
type Document = (typeof DOCUMENTS)[number]

const ROOTS = ['src', 'test', 'demo', 'docs/decisions']
const TEXT = /\.(ts|mjs|c|h|scn|md)$/
/** The patterns of this file contain names of documents. */
const SELF = 'test/spec.test.ts'

/** `docs/spec/semantics` and the sections, ids and quoted headings after it, up to another word. */
const CITATION =
  /docs\/spec\/(promises|semantics|correctness)((?:,? (?:\d+(?:\.\d+)?|[A-Z]\d+(?:-[A-Z]\d+)?|"[^"\n]+"))*)/g
const PARTS = /"([^"]+)"|([A-Z]\d+)|(\d+(?:\.\d+)?)/g
/** Ids in brackets, as `[A14]` or `[T2; docs/spec/semantics 4]`. */
const BRACKETS = /\[([^\][]*)\]/g
const ID = /(?<![\w.])[PTEFQSNLCA]\d{1,2}(?![\w.])/g

const texts = new Map<Document, string>(
  DOCUMENTS.map((name) => [name, readFileSync(`docs/spec/${name}.md`, 'utf8')]),
)

function textOf(name: string): string {
  for (const [document, text] of texts) if (document === name) return text
  return ''
}

const ids = new Set(
  Array.from(textOf('correctness').matchAll(/^\| ([A-Z]\d+) \|/gm), ([, id]) => id ?? ''),
)

function listFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return listFiles(path)
    return TEXT.test(path) && path !== SELF ? [path] : []
  })
}

/** The comments of a file, each block of lines as one line. */
function commentsOf(path: string): string {
  const text = readFileSync(path, 'utf8')
  if (path.endsWith('.md')) return text.replace(/\n/g, ' ')
  const lines = text
    .split('\n')
    .map((line) => /^\s*(?:\/\/|\/?\*+\/?|#)(.*)/.exec(line)?.[1] ?? '\n')
  return lines.map((line) => (line === '\n' ? line : line.trim())).join(' ')
}

function isThere(document: string, quoted: string, id: string, section: string): boolean {
  const text = textOf(document)
  if (quoted !== '') return text.toLowerCase().includes(quoted.toLowerCase())
  if (id !== '') return ids.has(id)
  return new RegExp(`^#+ ${section.replace('.', '\\.')}[. ]`, 'm').test(text)
}

/** `path: text` for each citation with a missing part. */
function missingIn(path: string): string[] {
  const whole = readFileSync(path, 'utf8')
  const comments = commentsOf(path)
  const cited = [...whole.matchAll(CITATION), ...comments.matchAll(CITATION)]
  const parts = cited.flatMap(([, document = '', rest = '']) =>
    Array.from(rest.matchAll(PARTS), ([part, quoted = '', id = '', section = '']) =>
      isThere(document, quoted, id, section) ? '' : `${document} ${part}`,
    ),
  )
  const bracketed = Array.from(comments.matchAll(BRACKETS), ([, inside = '']) => inside)
    .flatMap((inside) => Array.from(inside.replace(/"[^"]*"/g, '').matchAll(ID), ([id]) => id))
    .map((id) => (ids.has(id) ? '' : id))
  return [...new Set([...parts, ...bracketed])]
    .filter((what) => what !== '')
    .map((what) => `${path}: ${what}`)
}

const files = ROOTS.flatMap(listFiles)

test('docs/spec has every section, heading and id that is cited', () => {
  assert.deepEqual(files.flatMap(missingIn), [])
})

test('docs/spec is cited', () => {
  const cited = files.filter((path) =>
    /docs\/spec\/(promises|semantics|correctness)/.test(readFileSync(path, 'utf8')),
  )
  assert.ok(cited.length > 100, `${cited.length} files`)
  assert.ok(ids.size > 90, `${ids.size} ids`)
})

test('comments cite no document by a name in capitals that the repository does not have', () => {
  const outside = /\b(SEMANTICS|CORRECTNESS|DESIGN|FIELD_NOTES|HOUSE_STYLE)\b/
  assert.deepEqual(
    files.filter((path) => outside.test(readFileSync(path, 'utf8'))),
    [],
  )
})

test('docs/spec names every bound of the configuration', async () => {
  const { LIMITS } = await import('../src/core/limits.ts')
  const bounds = textOf('semantics').slice(textOf('semantics').indexOf('\n## 6.'))
  assert.deepEqual(
    Object.keys(LIMITS).filter((key) => !bounds.includes(`\`${key}\``)),
    [],
  )
})
