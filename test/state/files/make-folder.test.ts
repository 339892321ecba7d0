import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { makeFolder } from '../../../src/state/files/make-folder.ts'
import { NEEDS_ROOT } from '../../support/nodes/daemon-process.ts'
import { run } from '../../support/labs/lab-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-make-'))
after(() => rmSync(folder, { recursive: true }))

test('makeFolder makes what is missing, and leaves what is there', () => {
  const path = join(folder, 'a', 'b')
  makeFolder(path, 0o700)
  makeFolder(path, 0o755)
  assert.equal(statSync(path).mode & 0o777, 0o700)
})

test('makeFolder says that a file is in the way', () => {
  writeFileSync(join(folder, 'file'), '')
  assert.throws(() => makeFolder(join(folder, 'file', 'c')), /ENOTDIR/)
})

test('makeFolder says that the disk is read-only', { skip: NEEDS_ROOT }, async () => {
  const module = pathToFileURL('src/state/files/make-folder.ts').href
  const code = `import(${JSON.stringify(module)}).then(({ makeFolder }) => makeFolder("x/y/z"))`
  const mounts = 'mount --bind . . && mount -o remount,ro,bind . && cd "$PWD"'
  const command = `${mounts} && exec "${process.execPath}" --import "${pathToFileURL('node_modules/tsx/dist/esm/index.mjs').href}" -e '${code}'`
  const { code: exit, stderr } = await run('unshare', ['-m', 'sh', '-c', command], {
    cwd: folder,
    limitMs: 60_000,
  })
  assert.notEqual(exit, 0)
  assert.match(stderr, /EROFS/)
})
