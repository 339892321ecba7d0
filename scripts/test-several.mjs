// Runs several test files in one process, one after the other: node scripts/test-several.mjs FILE=MODULE ...
// Each file is a suite, so its hooks are its own. After it comes a test, END and the file's name, by which scripts/test-results.mjs tells
// whose each test is.
import { describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { END } from './test-results.mjs'

for (const argument of process.argv.slice(2)) {
  const [file, module] = argument.split('=')
  describe(file, async () => void (await import(pathToFileURL(module).href)))
  await test(`${END}${file}`, () => {})
}
