// Makes of a program and all that it imports one file, and of that file the code that V8 would make when it runs:
// bin/start.cjs starts from both, and the program is there in a third of the time (docs/decisions/0016-…).
//   node scripts/bundle.mjs [FOLDER]      main and exec into FOLDER; the same Node.js as bin/namegate then starts

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'
import { crc32 } from 'node:zlib'
import { build } from 'esbuild'

const PROGRAMS = { main: 'src/main.ts', exec: 'src/cli/exec/main.ts' }
/** As in bin/namegate: code is good for the flags with which the process that made it was started. */
const FLAGS = ['--max-semi-space-size=16']

const [, self, folder = 'dist'] = process.argv
if (FLAGS.every((flag) => process.execArgv.includes(flag))) {
  for (const [name, entry] of Object.entries(PROGRAMS)) await bundle(join(folder, name), entry)
} else {
  const { status } = spawnSync(process.execPath, [...FLAGS, self, folder], { stdio: 'inherit' })
  process.exitCode = status ?? 1
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
    logLevel: 'warning',
  })
  // Only comments have other characters; what becomes of those does not matter, but that they stay as many.
  const source = Buffer.from(outputFiles[0].text, 'latin1')
  writeFileSync(filename, source)
  // Every function, whether it runs at the start or not: what runs is not known without rights for a sandbox or a datapath.
  setFlagsFromString('--no-lazy')
  const script = new Script(source.latin1Slice(), { filename })
  // The code carries the flags of the moment at which it is taken.
  setFlagsFromString('--lazy')
  const code = script.createCachedData()
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32LE(crc32(code, crc32(source)))
  writeFileSync(`${path}.cache`, Buffer.concat([code, checksum]))
}
