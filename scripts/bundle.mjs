// Makes of a program and all that it imports one file, and of that file the code that V8 would make when it runs:
// bin/start.cjs starts from both, and the program is there in a third of the time (docs/decisions/0016-one-file-and-the-code-of-it.md).
//   node scripts/bundle.mjs [FOLDER]      all bundles into FOLDER; the same Node.js as bin/namegate then starts

import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'
import { build } from 'esbuild'
import codeCache from '../bin/code-cache.cjs'

const require = createRequire(import.meta.url)

// The flags of bin/namegate: code is good for the flags with which the process that made it was started.
const FLAGS = ['--max-semi-space-size=16']
const EXEC_FLAGS = [...FLAGS, '--min-semi-space-size=16']

/** Leaves out zod's messages in fifty languages. zod takes the English ones from their own file. */
const ENGLISH = {
  name: 'english',
  setup: (made) =>
    made.onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js'",
    })),
}

/**
 * Packages that a start of exec seldom needs. They are a bundle of their own, because each octet of a program takes time at its start. The
 * program loads this bundle when it first uses something of one of them.
 */
const SELDOM = ['ip-num', 'tldts', 'yaml']

const AT_FIRST_USE = {
  name: 'at-first-use',
  setup: (made) => {
    const filter = new RegExp(`^(${SELDOM.join('|')})$`)
    made.onResolve({ filter }, ({ path }) => ({ path, namespace: AT_FIRST_USE.name }))
    made.onLoad({ filter, namespace: AT_FIRST_USE.name }, async ({ path }) => {
      // Node.js 23 and newer give a CommonJS module this name, too.
      const names = Object.keys(await import(path)).filter((name) => name !== 'module.exports')
      const getters = names.map(
        (name) => `get ${name}() { return load('seldom')['${path}'].${name} }`,
      )
      return { contents: `module.exports = { ${getters.join(', ')} }` }
    })
  },
}

/** What dist/ has. `source` is code that imports all that belongs to the bundle. */
const BUNDLES = {
  main: { source: "import './src/main.ts'", flags: FLAGS, plugins: [ENGLISH] },
  exec: { source: "import './src/cli/exec/main.ts'", flags: EXEC_FLAGS, plugins: [AT_FIRST_USE] },
  seldom: {
    source: `module.exports = { ${SELDOM.map((name) => `'${name}': require('${name}')`).join(', ')} }`,
    flags: EXEC_FLAGS,
    plugins: [],
  },
}

/** Commands that end at once without a daemon. The code of what they use is the code of all short commands. */
const USUAL = [
  '--help',
  'status --socket /nonexistent',
  'get names --socket /nonexistent',
  'flows --socket /nonexistent',
  'ask a.test --socket /nonexistent',
  'explain a.test --socket /nonexistent',
  'policy check config/policies',
  'policy explain --policies config/policies --labels app=shop --ask a.test',
  'config check --config config/namegate.yaml',
]
const COMMANDS = 'commands'

const [, self, folder = 'dist', only] = process.argv
if (only === COMMANDS) await keepUsual(join(folder, 'main.bundle'), join(folder, 'commands.cache'))
else if (only !== undefined) await bundle(join(folder, only), BUNDLES[only])
else {
  for (const [name, { flags }] of Object.entries(BUNDLES)) start(name, flags, 'inherit')
  start(COMMANDS, EXEC_FLAGS, 'ignore')
}

/** `stdout`: of a process that makes one of the files. */
function start(name, flags, stdout) {
  const args = [...flags, self, folder, name]
  const { status } = spawnSync(process.execPath, args, { stdio: ['ignore', stdout, 'inherit'] })
  process.exitCode ||= status ?? 1
}

/** Writes the code of the functions that the usual commands call: a quarter of all, and there in a quarter of the time. */
async function keepUsual(filename, cache) {
  const octets = readFileSync(filename)
  const script = new Script(octets.latin1Slice(), { filename })
  process.stderr.write = (text, done) => {
    if (typeof done === 'function') done()
    return true
  }
  const exit = process.exit
  for (const line of USUAL) {
    process.argv = [process.execPath, 'namegate', ...line.split(' ')]
    const ended = new Promise((resolve) => (process.exit = resolve))
    const load = () => {
      throw new Error('the bundle of all commands has all packages')
    }
    script.runInThisContext()({}, require, pathToFileURL(filename).href, load)
    await ended
  }
  // The code carries the flags of this moment, which must be those of a start (src/native/young-generation.ts has set others).
  setFlagsFromString('--semi-space-growth-factor=2')
  setFlagsFromString('--parallel-scavenge')
  writeFileSync(cache, codeCache.codeOf(script, octets))
  exit(0)
}

async function bundle(path, { source, plugins }) {
  const filename = `${path}.bundle`
  const { outputFiles } = await build({
    stdin: { contents: source, resolveDir: join(import.meta.dirname, '..') },
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    // A function, so that it may be given what a module has of itself; code in ASCII, so that octets are characters. Lines
    // and names stay as they are, for readers of a stack trace.
    banner: { js: '(function (module, require, importMetaUrl, load) {' },
    footer: { js: '})' },
    define: { 'import.meta.url': 'importMetaUrl' },
    charset: 'ascii',
    plugins,
    logLevel: 'warning',
  })
  // Only comments have other characters; what becomes of those does not matter, but that they stay as many.
  const octets = Buffer.from(outputFiles[0].text, 'latin1')
  writeFileSync(filename, octets)
  writeFileSync(`${path}.cache`, codeCache.compile(octets, filename).octets)
}
