// Every row of the mutation table fits the tree: its line is in its file exactly once, and its tests exist.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { MUTATIONS } from './table.ts'

test('each mutation names one place in an existing file, changes it, and names existing tests', () => {
  const faults = MUTATIONS.flatMap(({ file, before, after, tests }) => {
    if (!existsSync(file)) return [`${file}: no such file`]
    const places = readFileSync(file, 'utf8').split(before).length - 1
    return [
      ...(places === 1 ? [] : [`${file}: ${places} places have: ${before}`]),
      ...(before === after ? [`${file}: nothing changes: ${before}`] : []),
      ...tests.filter((path) => !existsSync(path)).map((path) => `${file}: no test ${path}`),
    ]
  })
  assert.deepEqual(faults, [])
})
