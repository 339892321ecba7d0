// Starts the program from one file that scripts/bundle.mjs made of it, with the code that V8 compiled then: `exec` from a
// smaller one of its own, every other command from dist/main.bundle (docs/decisions/0016-…). Where the code is missing or
// damaged, or another version of Node.js or other flags refuse it, V8 compiles anew: that takes longer and changes nothing else.

'use strict'
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { Script } = require('node:vm')
const { crc32 } = require('node:zlib')

const UNAVAILABLE = 3
const program = join(__dirname, '../dist', process.argv[2] === 'exec' ? 'exec' : 'main')
const filename = `${program}.bundle`
load()(require, pathToFileURL(filename).href)

/** The program as a function; ends the process when the file is none. */
function load() {
  try {
    const source = readFileSync(filename)
    const cachedData = codeOf(`${program}.cache`, source)
    const start = new Script(source.latin1Slice(), { filename, cachedData }).runInThisContext()
    if (typeof start === 'function') return start
    throw new Error('it is not whole')
  } catch (error) {
    const root = join(__dirname, '..')
    process.stderr.write(
      `namegate: Cannot start from ${filename} (${error.message}): run 'npm ci && npm run build' in ${root}\n`,
    )
    process.exit(UNAVAILABLE)
  }
}

/** What V8 would take on trust: its own check is of the lengths. Ends with the checksum of source and code. */
function codeOf(path, source) {
  try {
    const octets = readFileSync(path)
    const code = octets.subarray(0, -4)
    return octets.readUInt32LE(code.length) === crc32(code, crc32(source)) ? code : undefined
  } catch {
    return undefined
  }
}
