// Makes the code of a bundle: what V8 compiles of it, for the next start (docs/decisions/0016-one-file-and-the-code-of-it.md). scripts/bundle.mjs makes it in a
// checkout. A package has none, because the code fits only one version of Node.js and one processor: there the first start makes it,
// if it may write beside the bundle.

'use strict'
const { accessSync, constants, renameSync, rmSync, writeFileSync } = require('node:fs')
const { dirname } = require('node:path')
const { setFlagsFromString } = require('node:v8')
const { Script } = require('node:vm')
const { crc32 } = require('node:zlib')

/** Returns a checksum of code and what it was made from and by: V8 checks little of this itself. */
function checksum(source, code) {
  return crc32(code, crc32(source, crc32(process.version)))
}

/** Compiles every function, whether it runs at the start or not, and returns the script with the octets of a `.cache` file. */
function compile(source, filename) {
  setFlagsFromString('--no-lazy')
  const script = new Script(source.latin1Slice(), { filename })
  // The code carries the flags of the moment at which it is taken.
  setFlagsFromString('--lazy')
  return { script, octets: codeOf(script, source) }
}

/** Returns the octets of a `.cache` file: what V8 has compiled of the script until now. */
function codeOf(script, source) {
  const code = script.createCachedData()
  const end = Buffer.alloc(4)
  end.writeUInt32LE(checksum(source, code))
  return Buffer.concat([code, end])
}

/**
 * Compiles a bundle, and writes its code for the next start. Returns undefined where it cannot: without the right to write, or
 * with flags in NODE_OPTIONS, with which the next start could not use the code.
 */
function compileAndKeep(filename, cache, source) {
  if (process.env.NODE_OPTIONS) return undefined
  const made = `${cache}.${process.pid}`
  try {
    accessSync(dirname(cache), constants.W_OK)
    const { script, octets } = compile(source, filename)
    writeFileSync(made, octets)
    renameSync(made, cache)
    return script
  } catch {
    rmSync(made, { force: true })
    return undefined
  }
}

module.exports = { codeOf, compile, compileAndKeep }
