// Makes of src/exec/main.ts and all that it imports one file, and of that file the code that V8 would make when it runs:
// bin/exec.cjs starts from both, and `namegate exec` is there in a third of the time (docs/decisions/0016-…).
//   node scripts/bundle.mjs [FOLDER]      the same Node.js, and no flags, as bin/namegate then starts

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'
import { build } from 'esbuild'

const [folder = 'dist'] = process.argv.slice(2)
const filename = join(folder, 'exec.bundle')

const { outputFiles } = await build({
  entryPoints: ['src/exec/main.ts'],
  bundle: true,
  write: false,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  minifyWhitespace: true,
  // A function, so that it may be given what a module has of itself; only ASCII, so that octets are characters.
  banner: { js: '(function (require, importMetaUrl) {' },
  footer: { js: '})' },
  define: { 'import.meta.url': 'importMetaUrl' },
  charset: 'ascii',
  logLevel: 'warning',
})
const source = outputFiles[0].text
writeFileSync(filename, source)
// Every function, whether it runs at the start or not: what runs is not known without rights for a sandbox.
setFlagsFromString('--no-lazy')
const script = new Script(source, { filename })
// The code carries the flags of the moment at which it is taken.
setFlagsFromString('--lazy')
writeFileSync(join(folder, 'exec.cache'), script.createCachedData())
