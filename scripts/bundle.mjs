// Makes of a program and all that it imports one file, and of that file the code that V8 would make when it runs:
// bin/start.cjs starts from both, and the program is there in a third of the time (docs/decisions/0016-…).
//   node scripts/bundle.mjs [FOLDER]      main and exec into FOLDER; the same Node.js as bin/namegate then starts

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import codeCache from '../bin/code-cache.cjs'

const FLAGS = ['--max-semi-space-size=16']
/** Each program with its flags in bin/namegate: code is good for the flags with which the process that made it was started. */
const PROGRAMS = {
  main: { entry: 'src/main.ts', flags: FLAGS },
  exec: { entry: 'src/cli/exec/main.ts', flags: [...FLAGS, '--min-semi-space-size=16'] },
}

/** Leaves out zod's messages in fifty languages. zod takes the English ones from their own file. */
const ENGLISH = {
  name: 'english',
  setup: (made) =>
    made.onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js'",
    })),
}

const [, self, folder = 'dist', only] = process.argv
if (only !== undefined) await bundle(join(folder, only), PROGRAMS[only].entry)
else {
  for (const [name, { flags }] of Object.entries(PROGRAMS)) {
    const args = [...flags, self, folder, name]
    const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
    process.exitCode ||= status ?? 1
  }
}

async function bundle(path, entry) {
  const filename = `${path}.bundle`
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    // A function, so that it may be given what a module has of itself; code in ASCII, so that octets are characters. Lines
    // and names stay as they are, for readers of a stack trace.
    banner: { js: '(function (require, importMetaUrl) {' },
    footer: { js: '})' },
    define: { 'import.meta.url': 'importMetaUrl' },
    charset: 'ascii',
    plugins: [ENGLISH],
    logLevel: 'warning',
  })
  // Only comments have other characters; what becomes of those does not matter, but that they stay as many.
  const source = Buffer.from(outputFiles[0].text, 'latin1')
  writeFileSync(filename, source)
  writeFileSync(`${path}.cache`, codeCache.compile(source, filename).octets)
}
