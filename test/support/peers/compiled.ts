// The C programs of tests, compiled once for all test processes.

import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCES = fileURLToPath(new URL('../programs', import.meta.url))
const MADE = fileURLToPath(new URL('../../../build/test-programs', import.meta.url))

/** The program of test/support/programs/NAME.c. `options`: further ones of gcc. */
export function compiled(name: string, ...options: readonly string[]): string {
  const program = join(MADE, name)
  const made = statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const sources = readdirSync(SOURCES).filter((each) => each === `${name}.c` || each.endsWith('.h'))
  if (sources.every((each) => statSync(join(SOURCES, each)).mtimeMs < made)) return program
  mkdirSync(MADE, { recursive: true })
  const fresh = `${program}.${process.pid}`
  const source = join(SOURCES, `${name}.c`)
  execFileSync('gcc', ['-O2', '-Wall', '-Wextra', ...options, '-o', fresh, source])
  renameSync(fresh, program)
  return program
}
