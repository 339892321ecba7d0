// Starts a TypeScript program as a process of its own, for tests and the demo.

import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const START = fileURLToPath(new URL('../../../scripts/test-program.mjs', import.meta.url))

/** The arguments of Node.js for a program: the module that scripts/test.mjs compiled, or otherwise the source through tsx. */
export function programArgs(path: string, ...args: readonly string[]): readonly string[] {
  return process.env['NAMEGATE_TEST_MODULES'] === undefined
    ? ['--import', import.meta.resolve('tsx'), resolve(path), ...args]
    : ['--enable-source-maps', START, resolve(path), ...args]
}
