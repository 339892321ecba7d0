import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { findPolicyFiles, readTextFile } from '../../src/config/files.ts'

const root = mkdtempSync(join(tmpdir(), 'namegate-files-'))
after(() => rmSync(root, { recursive: true, force: true }))

/** Paths below the test's folder. */
function below(paths: readonly string[]): readonly string[] {
  return paths.map((path) => path.slice(root.length + 1))
}

test('findPolicyFiles takes each named file, and the files of a folder that can be policies', () => {
  const folder = join(root, 'some')
  mkdirSync(join(folder, 'team', 'deep'), { recursive: true })
  for (const name of [
    'b.yaml',
    'a.yml',
    'c.json',
    'README.md',
    '.hidden.yaml',
    'team/deep/d.yaml',
  ]) {
    writeFileSync(join(folder, name), '')
  }
  const found = findPolicyFiles(folder)
  assert.deepEqual(found.faults, [])
  assert.deepEqual(below(found.files), [
    'some/a.yml',
    'some/b.yaml',
    'some/c.json',
    'some/team/deep/d.yaml',
  ])
  assert.deepEqual(below(findPolicyFiles(join(folder, 'README.md')).files), ['some/README.md'])
})

test('findPolicyFiles counts a mounted ConfigMap once', () => {
  const folder = join(root, 'mount')
  mkdirSync(join(folder, '..2026_01_01'), { recursive: true })
  writeFileSync(join(folder, '..2026_01_01', 'p.yaml'), '')
  symlinkSync('..2026_01_01', join(folder, '..data'))
  symlinkSync('..data/p.yaml', join(folder, 'p.yaml'))
  assert.deepEqual(below(findPolicyFiles(folder).files), ['mount/p.yaml'])
})

test('findPolicyFiles reports paths that it cannot use', () => {
  const folder = join(root, 'odd')
  mkdirSync(folder)
  writeFileSync(join(folder, 'x.allow'), '')
  symlinkSync('nowhere.yaml', join(folder, 'gone.yaml'))
  symlinkSync('.', join(folder, 'loop'))
  const { files, faults } = findPolicyFiles(folder)
  assert.ok(below(files).includes('odd/x.allow'), 'an allow-list is a policy file')
  const messages = new Set(faults.map(({ message }) => message))
  assert.ok(messages.has('cannot read: ENOENT: no such file or directory'))
  assert.ok(messages.has('found folders deeper than 16'))
  assert.deepEqual(findPolicyFiles(join(root, 'none')).faults, [
    {
      position: { file: join(root, 'none'), line: 1, column: 1 },
      message: 'cannot read: ENOENT: no such file or directory',
    },
  ])
})

test('findPolicyFiles stops at its bound of files, and reports this once', () => {
  const folder = join(root, 'endless')
  mkdirSync(folder)
  for (const name of ['a', 'b']) symlinkSync('.', join(folder, name))
  const { faults, unread } = findPolicyFiles(folder)
  const last = faults.at(-1)
  assert.deepEqual(last, {
    position: { file: folder, line: 1, column: 1 },
    message: 'found more than 100000 files and folders, expected a folder of policies',
  })
  assert.ok(unread.includes(folder), 'what was not looked at is not gone')
})

test('readTextFile reads UTF-8 and refuses other octets', () => {
  const file = join(root, 'text')
  writeFileSync(file, 'ä')
  assert.deepEqual(readTextFile(file), { kind: 'ok', text: 'ä' })
  writeFileSync(file, Buffer.of(0x61, 0xff))
  const bad = readTextFile(file)
  assert.ok(bad.kind === 'bad' && bad.fault.message.startsWith('cannot read: '))
  assert.equal(readTextFile(root).kind, 'bad', 'a folder')
})

test(
  'readTextFile reads regular files only, and never waits for a writer',
  { timeout: 5000 },
  () => {
    const folder = mkdtempSync(join(root, 'pipes-'))
    const pipe = join(folder, 'pipe.yaml')
    execFileSync('mkfifo', [pipe])
    for (const path of [pipe, '/dev/zero', folder]) {
      const result = readTextFile(path)
      assert.equal(result.kind, 'bad', path)
      assert.equal(result.fault.message, 'cannot read: it is no regular file')
    }
  },
)
