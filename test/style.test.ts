// Format, lint and types as tests, so that the command of CI counts them. A failure prints the report of the tool.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { run } from './support/labs/lab-process.ts'

const LIMIT_MS = 240_000
const rows: readonly (readonly [name: string, tool: string, args: readonly string[]])[] = [
  [
    'oxfmt finds every file formatted (npm run format does it)',
    'oxfmt/bin/oxfmt',
    ['--list-different'],
  ],
  [
    'oxlint finds no fault, and none in the types',
    'oxlint/bin/oxlint',
    ['--type-aware', '--type-check', '--deny-warnings'],
  ],
]

for (const [name, tool, args] of rows) {
  test(name, async () => {
    const env = { NO_COLOR: '1' }
    const { code, stdout, stderr } = await run(
      process.execPath,
      [`node_modules/${tool}`, ...args],
      { env, limitMs: LIMIT_MS },
    )
    if (code !== 0) assert.fail(`exit ${code}\n${stdout}${stderr}`)
  })
}
