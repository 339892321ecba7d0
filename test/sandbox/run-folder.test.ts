import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { systemClock } from '../../src/core/clock.ts'
import { isBuilt, loadPosix } from '../../src/native/native.ts'
import { makeRunFolder, sweepRunFolders } from '../../src/sandbox/run-folder.ts'

const skip = isBuilt('posix') ? false : 'the native part is not built'
const top = mkdtempSync(join(tmpdir(), 'namegate-folders-'))
after(() => rmSync(top, { recursive: true, force: true }))

/** Makes a folder like that of a run that was killed an hour ago. */
function leave(name: string): string {
  const folder = join(top, name)
  mkdirSync(folder)
  writeFileSync(join(folder, 'lock'), '')
  writeFileSync(join(folder, 'resolv.conf'), '')
  age(folder)
  return folder
}

function age(folder: string): void {
  const hourAgo = Date.now() / 1000 - 3600
  utimesSync(folder, hourAgo, hourAgo)
}

test('sweepRunFolders removes only folders of runs that have ended', { skip }, () => {
  const posix = loadPosix()
  const mine = makeRunFolder(posix, top)
  age(mine.path)
  const left = leave('namegate-exec-a1B2c3')
  const others = leave('something-else')
  const young = join(top, 'namegate-exec-begins')
  mkdirSync(young)
  const odd = join(top, 'namegate-exec-oddone')
  mkdirSync(odd)
  age(odd)
  symlinkSync(others, join(top, 'namegate-exec-linked'))
  sweepRunFolders(posix, systemClock, top)
  const there = [left, others, mine.path, young, odd, join(others, 'resolv.conf')].map(existsSync)
  assert.deepEqual(there, [false, true, true, true, true, true])
  mine.remove()
  assert.ok(!existsSync(mine.path))
})
