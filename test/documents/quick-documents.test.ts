// The quick reader's documents against the whole one's: values and the places of everything in them.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseDocuments } from '../../src/documents/quick-documents.ts'
import { parseYaml } from '../../src/documents/yaml-source.ts'
import type { SourceDocument, SourcePath } from '../../src/documents/source-document.ts'
import { readQuickYaml } from '../../src/documents/quick-yaml.ts'
import { formatPolicy } from '../support/models/policy-document.ts'
import { runsOf } from '../support/properties.ts'
import { Random } from '../support/models/random.ts'
import { randomDocument } from '../support/models/random-document.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Paths to everything in a value. */
function* pathsIn(value: unknown, path: SourcePath = []): Iterable<SourcePath> {
  yield path
  if (typeof value !== 'object' || value === null) return
  for (const [key, inside] of Object.entries(value)) {
    yield* pathsIn(inside, [...path, Array.isArray(value) ? Number(key) : key])
  }
}

function described(document: SourceDocument): unknown {
  const places = [...pathsIn(document.value)].map((path) => [
    path,
    document.positionOf(path),
    document.positionOf(path, 'key'),
  ])
  return { value: document.value, places }
}

function assertAlike(text: string, title: string): void {
  const [quick, whole] = [parseDocuments(text, 'f.yaml'), parseYaml(text, 'f.yaml')]
  assert.deepEqual(quick.faults, whole.faults, title)
  assert.deepEqual(quick.documents.map(described), whole.documents.map(described), title)
}

function* yamlFilesIn(folder: string): Iterable<string> {
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true })) {
    if (entry.isFile() && /\.ya?ml$/.test(entry.name)) yield join(entry.parentPath, entry.name)
  }
}

test('parseDocuments reads every YAML file here as the whole reader does, values, places and faults', () => {
  let count = 0
  for (const folder of ['config', 'deploy', 'docs', 'examples', 'test']) {
    try {
      for (const file of yamlFilesIn(folder)) {
        assertAlike(readFileSync(file, 'utf8'), file)
        count++
      }
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    }
  }
  assert.ok(count > 5, `${count} files`)
})

test('parseDocuments reads random policies as the whole reader does, one by one and many in a file', () => {
  const random = new Random(20_261_121)
  const texts: string[] = []
  let quick = 0
  for (let i = 0; i < runsOf(200); i++) {
    const text = formatPolicy(randomDocument(random, `p${i}`))
    if (readQuickYaml(text) !== undefined) quick++
    assertAlike(text, text)
    texts.push(`${text.trimEnd()}\n`)
  }
  assertAlike(texts.slice(0, 40).join('---\n'), 'together')
  assertAlike(`---\n${texts.slice(0, 3).join('# between\n---\n')}`, 'with a mark before')
  assert.ok(quick > 50, `${quick} of 200 read quickly`)
})

test('parseDocuments separates documents where the whole reader does', () => {
  const rows: readonly (readonly [reason: string, text: string])[] = [
    ['a mark before', '---\na: b\n'],
    ['a mark behind', 'a: b\n---\n'],
    ['two marks together', 'a: b\n---\n---\nc: d\n'],
    ['blanks behind a mark', 'a: b\n---  \nc: d\n'],
    ['a document on the mark’s line', '--- a\n'],
    ['something like a mark', 'a: b\n----\nc: d\n'],
    ['a mark further in', 'a:\n  ---\n'],
    ['an end', 'a: b\n...\n---\nc: d\n'],
    ['a mark in a text', 'a: "\n---\n"\n'],
    ['a mark in a block', 'a: |\n  x\n---\nb: c\n'],
    ['a comment before a mark', '# x\n---\na: b\n'],
    ['a comment alone', '# x\n'],
    ['a broken one among others', 'a: b\n---\nc: [\n---\nd: e\n'],
    ['lines that end in two octets', 'a: b\r\n---\r\nc: d\r\n'],
    ['nothing', ''],
  ]
  for (const [reason, text] of rows) assertAlike(text, reason)
})

test('parseDocuments knows the places beside a number that is a key', () => {
  // An object has such keys before all others, whatever stands first.
  assertAlike('a: { b: c, "7": d, e: f }\n"3": g\nh: i\n', 'numbers as keys')
})
