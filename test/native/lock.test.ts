import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { UnavailableError } from '../../src/core/errors.ts'
import { removeFreeLock, takeLock } from '../../src/native/lock.ts'
import { nativeFile } from '../../src/native/native-files.ts'
import { loadPosix } from '../../src/native/native.ts'

const skip = existsSync(nativeFile('posix.node')) ? false : 'the native part is not built'

/** Takes the lock, prints a line, and waits to be killed. */
const HOLDER = `
  const { loadPosix } = await import('./src/native/native.ts')
  const { takeLock } = await import('./src/native/lock.ts')
  console.log(takeLock(loadPosix(), process.env.LOCK, process.pid).kind)
  setInterval(() => undefined, 1000)
`

/** Takes the lock again and again. Prints how often, and how often another process had it at the same time. */
const TAKER = `
  const { openSync, closeSync, unlinkSync } = await import('node:fs')
  const { loadPosix } = await import('./src/native/native.ts')
  const { removeFreeLock, takeLock } = await import('./src/native/lock.ts')
  const [posix, path] = [loadPosix(), process.env.LOCK]
  let [taken, both] = [0, 0]
  for (const end = Date.now() + 1500; Date.now() < end;) {
    const lock = takeLock(posix, path, process.pid)
    if (lock.kind !== 'held') continue
    taken++
    try {
      closeSync(openSync(path + '.inside', 'wx'))
      unlinkSync(path + '.inside')
    } catch {
      both++
    }
    lock.release()
    removeFreeLock(posix, path)
  }
  console.log(JSON.stringify({ taken, both }))
`

describe('takeLock', { skip }, () => {
  const withFolder = async (run: (path: string) => void | Promise<void>): Promise<void> => {
    const folder = mkdtempSync(join(tmpdir(), 'namegate-lock-'))
    try {
      await run(join(folder, 'lock'))
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  test('takeLock gives the lock to one process at a time and names the holder', () =>
    withFolder((path) => {
      const posix = loadPosix()
      const first = takeLock(posix, path, 12345)
      assert.ok(first.kind === 'held')
      assert.deepEqual(takeLock(posix, path, 2), { kind: 'taken', holder: 12345 })
      first.release()
      const second = takeLock(posix, path, 7)
      assert.ok(second.kind === 'held', 'the file of an ended process does not block')
      assert.deepEqual(takeLock(posix, path, 2), { kind: 'taken', holder: 7 }, 'no old digits')
      second.release()
    }))

  test('takeLock takes the lock of a killed process', () =>
    withFolder(async (path) => {
      const args = ['--import', 'tsx', '--input-type=module', '-e', HOLDER]
      const env = { ...process.env, LOCK: path }
      const holder = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
      const said: unknown[] = await once(holder.stdout, 'data')
      assert.equal(String(said[0]).trim(), 'held')
      const posix = loadPosix()
      assert.deepEqual(takeLock(posix, path, 1), { kind: 'taken', holder: holder.pid })
      holder.kill('SIGKILL')
      await once(holder, 'exit')
      const result = takeLock(posix, path, 1)
      assert.ok(result.kind === 'held')
      result.release()
    }))

  test('takeLock names the file that it could not lock, and the reason', () => {
    const missing = join(tmpdir(), 'namegate-no-such-folder', 'lock')
    assert.throws(
      () => takeLock(loadPosix(), missing, 1),
      (error) => {
        return error instanceof UnavailableError && /no-such-folder.*ENOENT/.test(error.message)
      },
    )
  })

  test('removeFreeLock removes a file that no process holds, and no other', () =>
    withFolder((path) => {
      const posix = loadPosix()
      const held = takeLock(posix, path, 1)
      assert.ok(held.kind === 'held')
      removeFreeLock(posix, path)
      assert.ok(existsSync(path))
      assert.equal(takeLock(posix, path, 2).kind, 'taken')
      held.release()
      removeFreeLock(posix, path)
      assert.equal(existsSync(path), false)
    }))

  test('takeLock gives the lock to one process at a time while its file is removed again and again', () =>
    withFolder(async (path) => {
      const args = ['--import', 'tsx', '--input-type=module', '-e', TAKER]
      const env = { ...process.env, LOCK: path }
      const said = await Promise.all(
        [1, 2].map(async () => {
          const taker = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
          const chunks: unknown[] = await once(taker.stdout, 'data')
          return JSON.parse(String(chunks[0])) as { readonly taken: number; readonly both: number }
        }),
      )
      for (const { taken, both } of said) assert.ok(taken > 10 && both === 0, JSON.stringify(said))
    }))
})
