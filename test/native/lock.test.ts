import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { UnavailableError } from '../../src/core/errors.ts'
import { takeLock } from '../../src/native/lock.ts'
import { nativeFile } from '../../src/native/native-files.ts'
import { loadPosix } from '../../src/native/native.ts'

const skip = existsSync(nativeFile('posix.node')) ? false : 'the native part is not built'

/** Takes the lock, says so, and waits to be killed. */
const HOLDER = `
  const { loadPosix } = await import('./src/native/native.ts')
  const { takeLock } = await import('./src/native/lock.ts')
  console.log(takeLock(loadPosix(), process.env.LOCK, process.pid).kind)
  setInterval(() => undefined, 1000)
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

  test('takeLock gives the lock to one at a time and names the holder', () =>
    withFolder((path) => {
      const posix = loadPosix()
      const first = takeLock(posix, path, 12345)
      assert.ok(first.kind === 'held')
      assert.deepEqual(takeLock(posix, path, 2), { kind: 'taken', holder: 12345 })
      first.release()
      const second = takeLock(posix, path, 7)
      assert.ok(second.kind === 'held', 'a file that stayed behind does not block')
      assert.deepEqual(takeLock(posix, path, 2), { kind: 'taken', holder: 7 }, 'no old digits')
      second.release()
    }))

  test('takeLock gets the lock of a process that was killed', () =>
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

  test('takeLock says which file it could not lock, and why', () => {
    const missing = join(tmpdir(), 'namegate-no-such-folder', 'lock')
    assert.throws(
      () => takeLock(loadPosix(), missing, 1),
      (error) => {
        return error instanceof UnavailableError && /no-such-folder.*ENOENT/.test(error.message)
      },
    )
  })
})
