// Notes of admin sockets: they exist while a daemon serves, and the next daemon removes those of a killed one.

import assert from 'node:assert/strict'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { noteSocket, notedSockets } from '../../src/daemon/noted-sockets.ts'
import { mkFolder } from '../support/nodes/daemon-files.ts'

const folder = mkFolder()
after(() => rmSync(folder, { recursive: true, force: true }))

/** Other daemons of this machine have notes, too. */
function ours(): readonly string[] {
  return notedSockets().filter((path) => path.startsWith(folder))
}

test('noteSocket notes a socket until its end, and removes notes of killed daemons', () => {
  process.env['XDG_RUNTIME_DIR'] = folder
  const [first, second] = ['a.sock', 'b.sock'].map((name) => join(folder, name))
  assert.ok(first !== undefined && second !== undefined)
  writeFileSync(first, '')
  writeFileSync(second, '')
  const forget = noteSocket(first)
  const forgetSecond = noteSocket(second)
  assert.deepEqual(ours(), [first, second])
  forget()
  assert.deepEqual(ours(), [second])
  rmSync(second)
  const forgetFirst = noteSocket(first)
  assert.deepEqual(ours(), [first], 'the second socket is gone, so its daemon was killed')
  forgetFirst()
  forgetSecond()
  assert.deepEqual(ours(), [])
  assert.ok(existsSync(folder))
})
