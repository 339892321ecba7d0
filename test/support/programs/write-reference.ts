// npm run reference: writes the pages of docs/reference/ and the library's types from the program. A test compares them.

import { mkdirSync, writeFileSync } from 'node:fs'
import { makeReference } from '../reference.ts'

mkdirSync('docs/reference', { recursive: true })
for (const [path, text] of await makeReference()) {
  writeFileSync(path, text)
  console.log(path)
}
