// Makes of a program and all that it imports one file, and of that file the code that V8 would make when it runs:
// bin/start.cjs starts from both, and the program is there in a third of the time (docs/decisions/0016-one-file-and-the-code-of-it.md).
//   node scripts/bundle.mjs [FOLDER]      all bundles into FOLDER; the same Node.js as bin/namegate then starts

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import codeCache from '../bin/code-cache.cjs'
import { keepCommands, keepDaemon } from './used-code.mjs'

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

/** Loads packages when something of one of them is first used. `from`: the code that loads a package. */
function atFirstUse(packages, from) {
  const namespace = 'at-first-use'
  const filter = new RegExp(`^(${packages.join('|')})$`)
  const setup = (made) => {
    made.onResolve({ filter }, ({ path, namespace: importer }) =>
      importer === namespace ? undefined : { path, namespace },
    )
    made.onLoad({ filter, namespace }, async ({ path }) => {
      // Node.js 23 and newer give a CommonJS module this name, too.
      const names = Object.keys(await import(path)).filter((name) => name !== 'module.exports')
      const getters = names.map((name) => `get ${name}() { return ${from(path)}.${name} }`)
      return {
        contents: `module.exports = { ${getters.join(', ')} }`,
        resolveDir: import.meta.dirname,
      }
    })
  }
  return { name: namespace, setup }
}

/** What dist/ has. `source` is code that imports all that belongs to the bundle. `isWhole`: the code of all its functions is kept. */
const BUNDLES = {
  main: {
    source: "import './src/main.ts'",
    flags: FLAGS,
    isWhole: false,
    // It checks constants by long expressions when it is loaded, and only unusual forms of addresses need it.
    plugins: [ENGLISH, atFirstUse(['ip-num'], (path) => `require('${path}')`)],
  },
  exec: {
    source: "import './src/cli/exec/main.ts'",
    flags: EXEC_FLAGS,
    isWhole: true,
    plugins: [atFirstUse(SELDOM, (path) => `load('seldom')['${path}']`)],
  },
  seldom: {
    source: `module.exports = { ${SELDOM.map((name) => `'${name}': require('${name}')`).join(', ')} }`,
    flags: EXEC_FLAGS,
    isWhole: true,
    plugins: [],
  },
}

/** Code of what a run of the main bundle used -> the flags of a start from it. */
const USED = {
  main: { flags: FLAGS, keep: keepDaemon },
  commands: { flags: EXEC_FLAGS, keep: keepCommands },
}
const CODE = 'code-of-'

const [, self, folder = 'dist', only] = process.argv
if (only === undefined) {
  for (const [name, { flags }] of Object.entries(BUNDLES)) start(name, flags, 'inherit')
  for (const [name, { flags }] of Object.entries(USED)) start(CODE + name, flags, 'ignore')
} else if (only.startsWith(CODE)) {
  const name = only.slice(CODE.length)
  await USED[name].keep(join(folder, 'main.bundle'), join(folder, `${name}.cache`))
} else await bundle(join(folder, only), BUNDLES[only])

/** `stdout`: of a process that makes one of the files. */
function start(name, flags, stdout) {
  const args = [...flags, self, folder, name]
  const { status } = spawnSync(process.execPath, args, { stdio: ['ignore', stdout, 'inherit'] })
  process.exitCode ||= status ?? 1
}

async function bundle(path, { source, isWhole, plugins }) {
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
  if (isWhole) writeFileSync(`${path}.cache`, codeCache.compile(octets, filename).octets)
}
