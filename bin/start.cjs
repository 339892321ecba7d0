// Starts the program from one file that scripts/bundle.mjs made of it, with the code that V8 compiled then: `exec` from a
// smaller one of its own (and dist/seldom.bundle when it needs that), every other command from dist/main.bundle
// (docs/decisions/0016-one-file-and-the-code-of-it.md, 0047-…). Where the code is missing, damaged or of another version of Node.js, V8 compiles anew, and keeps the code if it can (code-cache.cjs). With other flags V8 refuses the
// code, and compiles anew at each start: that takes longer and changes nothing else.

'use strict'
const { existsSync, readdirSync, readFileSync } = require('node:fs')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { Script } = require('node:vm')
const { crc32 } = require('node:zlib')

const UNAVAILABLE = 3
/** These start with the code of what a daemon uses, the others with the code of what commands use (scripts/used-code.mjs). */
const DAEMONS = ['run', 'up']
const root = join(__dirname, '..')
refuseOtherMachines()
const command = process.argv[2]
if (command === 'exec') load('exec')
else load('main', DAEMONS.includes(command) ? 'main' : 'commands')

/** Runs a bundle of dist/, and returns what it exports; ends the process when the file is none. `code`: the name of its .cache. */
function load(name, code = name) {
  const filename = join(root, 'dist', `${name}.bundle`)
  const module = {}
  const start = startOf(filename, join(root, 'dist', `${code}.cache`))
  start(module, require, pathToFileURL(filename).href, load)
  return module.exports
}

function startOf(filename, cache) {
  try {
    const start = scriptOf(filename, cache, readFileSync(filename)).runInThisContext()
    if (typeof start === 'function') return start
    throw new Error('it is not whole')
  } catch (error) {
    fail(
      `Cannot start from ${filename} (${error.message}): run 'npm ci && npm run build' in ${root}`,
    )
  }
}

function scriptOf(filename, cache, source) {
  const cachedData = codeOf(cache, source)
  const script =
    cachedData === undefined
      ? require('./code-cache.cjs').compileAndKeep(filename, cache, source)
      : undefined
  return script ?? new Script(source.latin1Slice(), { filename, cachedData })
}

/** What V8 would take on trust: its own check is of the lengths. Ends with code-cache.cjs's checksum. */
function codeOf(path, source) {
  try {
    const octets = readFileSync(path)
    const code = octets.subarray(0, -4)
    const checksum = crc32(code, crc32(source, crc32(process.version)))
    return octets.readUInt32LE(code.length) === checksum ? code : undefined
  } catch {
    return undefined
  }
}

/** A package that was unpacked on a machine for which it has no native part. npm refuses to install it there. */
function refuseOtherMachines() {
  const prebuilds = join(root, 'prebuilds')
  const isPackage = !existsSync(join(root, 'build')) && existsSync(prebuilds)
  const targets = isPackage ? readdirSync(prebuilds).filter((name) => name !== 'bpf') : []
  const here = `${process.platform}-${process.arch}`
  if (
    process.platform !== 'linux' ||
    (isPackage && !targets.some((name) => name.startsWith(`${here}-`)))
  ) {
    const supported = targets.length === 0 ? 'Linux' : targets.sort().join(', ')
    fail(`Cannot run on ${here}: this package supports ${supported}`)
  }
}

function fail(reason) {
  process.stderr.write(`namegate: ${reason}\n`)
  process.exit(UNAVAILABLE)
}
