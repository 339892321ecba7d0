// The pages of docs/reference/, and the library's types, equal what the program generates.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { makeReference } from './support/reference.ts'

test('docs/reference and the types of the library are up to date (npm run reference writes it)', async () => {
  const pages = await makeReference()
  assert.equal(pages.size, 6)
  for (const [path, text] of pages) {
    assert.equal(readFileSync(path, 'utf8'), text, `${path}: run npm run reference`)
  }
})
