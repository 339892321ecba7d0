// Starts `namegate exec` from the one file that scripts/bundle.mjs made of it, with the code that V8 compiled then. Another
// version of Node.js or other flags refuse that code and compile anew, which takes longer and changes nothing else.

'use strict'
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { Script } = require('node:vm')

const filename = join(__dirname, '../dist/exec.bundle')
const script = new Script(readFileSync(filename, 'latin1'), {
  filename,
  cachedData: readFileSync(join(__dirname, '../dist/exec.cache')),
})
script.runInThisContext()(require, pathToFileURL(filename).href)
