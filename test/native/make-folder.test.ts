import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { makeFolder } from '../../src/native/make-folder.ts'
import { run } from '../support/labs/lab-process.ts'
import { NEEDS_ROOT } from '../support/nodes/daemon-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-make-'))
after(() => rmSync(folder, { recursive: true }))

test('makeFolder makes missing folders, and leaves existing ones', () => {
  const path = join(folder, 'a', 'b')
  makeFolder(path, 0o700)
  makeFolder(path, 0o755)
  assert.equal(statSync(path).mode & 0o777, 0o700)
})

test('makeFolder reports a file in the way', () => {
  writeFileSync(join(folder, 'file'), '')
  assert.throws(() => makeFolder(join(folder, 'file', 'c')), /ENOTDIR/)
})

test('makeFolder reports a file system that takes no folder', async () => {
  const module = pathToFileURL('src/native/make-folder.ts').href
  const code = `import(${JSON.stringify(module)}).then(({ makeFolder }) => makeFolder("/proc/no-such/folder"))`
  const tsx = pathToFileURL('node_modules/tsx/dist/esm/index.mjs').href
  // A process of its own, because in /proc Node's own recursive form does not return.
  const { code: exit, stderr } = await run(process.execPath, ['--import', tsx, '-e', code], {
    limitMs: 60_000,
  })
  assert.equal(exit, 1, stderr)
  assert.match(stderr, /ENOENT.*'\/proc\/no-such'/)
})

test('makeFolder reports a read-only disk', { skip: NEEDS_ROOT }, async () => {
  const module = pathToFileURL('src/native/make-folder.ts').href
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
