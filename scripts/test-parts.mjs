// Gives a module of build/tests/parts.js, which test-modules.mjs made, with the code that V8 compiled before:
//   partOf('src/core/ip.ts')
// As a program it keeps the code of what most processes load, for the processes to come.

import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Script } from 'node:vm'

/** What most processes load. */
const USUAL = ['src/daemon/daemon.ts', 'test/support/labs/lab-namegate.ts', 'fast-check']

const filename = join(process.env.NAMEGATE_TEST_MODULES, 'parts.js')
const cache = join(process.env.NAMEGATE_TEST_MODULES, 'parts.cache')
const isProgram = process.argv[1] === fileURLToPath(import.meta.url)
const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData: codeOf() })
const makers = {}
const made = new Map()
script.runInThisContext()(createRequire(import.meta.url), makers)

/** The exports of a module, which is evaluated when it is first asked for. */
export default function partOf(name) {
  if (!made.has(name)) made.set(name, makers[name]())
  return made.get(name)
}

if (isProgram) {
  for (const name of USUAL.filter((each) => each in makers)) partOf(name)
  writeFileSync(cache, script.createCachedData())
  process.exit()
}

function codeOf() {
  try {
    return isProgram ? undefined : readFileSync(cache)
  } catch {
    return undefined
  }
}
