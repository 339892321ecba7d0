// bin/namegate in a tree of its own, with a program that only says who it is: the started process must be that program,
// from any folder, through a symlink, built or not.

import assert from 'node:assert/strict'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { LabProcess, run } from './support/lab-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate bin-'))
after(() => rmSync(folder, { recursive: true }))

function makeTree(
  name: string,
  parts: { readonly packages: boolean; readonly built?: 'fresh' | 'stale' },
): string {
  const top = join(folder, name)
  for (const each of ['bin', 'src', 'dist/src']) mkdirSync(join(top, each), { recursive: true })
  cpSync('bin/namegate', join(top, 'bin/namegate'))
  writeFileSync(join(top, 'package.json'), '{ "type": "module" }')
  const program = (from: string) =>
    `console.log(JSON.stringify({ from: '${from}', pid: process.pid, args: process.argv.slice(2) }))`
  writeFileSync(join(top, 'src/main.ts'), program('src'))
  if (parts.packages) symlinkSync(resolve('node_modules'), join(top, 'node_modules'))
  if (parts.built === undefined) return top
  writeFileSync(join(top, 'dist/src/main.js'), program('dist'))
  writeFileSync(join(top, 'dist/src/.built'), '')
  const built = Date.now() / 1000 + (parts.built === 'fresh' ? 60 : -60)
  utimesSync(join(top, 'dist/src/.built'), built, built)
  return top
}

async function start(
  path: string,
  cwd: string,
): Promise<{ pid: number; code: number; said: string }> {
  const child = new LabProcess(path, ['status', 'a b'], { cwd })
  const { pid } = child
  const output = await child.ended(10_000)
  return { pid, code: output?.code ?? -1, said: (output?.stdout ?? '') + (output?.stderr ?? '') }
}

const ROWS = [
  { name: 'plain', built: undefined, from: 'src', reason: 'nothing is built' },
  { name: 'fresh', built: 'fresh', from: 'dist', reason: 'dist is newer than every source' },
  { name: 'stale', built: 'stale', from: 'src', reason: 'a source is newer than dist' },
] as const

for (const { name, built, from, reason } of ROWS) {
  test(`bin/namegate becomes the program of ${from}: ${reason}`, async () => {
    const top = makeTree(name, { packages: true, ...(built === undefined ? {} : { built }) })
    const link = join(folder, `${name}-link`)
    symlinkSync(join(top, 'bin/namegate'), link)
    for (const path of [join(top, 'bin/namegate'), link]) {
      const { pid, said } = await start(path, tmpdir())
      assert.deepEqual(JSON.parse(said), { from, pid, args: ['status', 'a b'] })
    }
  })
}

test('bin/namegate starts exec from the bundle, with the code that was made of it', async () => {
  const top = makeTree('exec', { packages: true, built: 'fresh' })
  cpSync('bin/exec.cjs', join(top, 'bin/exec.cjs'))
  await run(process.execPath, ['scripts/bundle.mjs', join(top, 'dist')])
  const script = `
    const { Script } = require('node:vm')
    const { readFileSync } = require('node:fs')
    const [filename, cache] = process.argv.slice(1)
    const cachedData = readFileSync(cache)
    const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData })
    console.log(script.cachedDataRejected)`
  const files = ['exec.bundle', 'exec.cache'].map((name) => join(top, 'dist', name))
  assert.equal((await run(process.execPath, ['-e', script, ...files])).stdout, 'false\n')
  const help = await run(join(top, 'bin/namegate'), ['exec', '--help'], { cwd: tmpdir() })
  assert.match(help.stdout, /^Usage: namegate exec /)
  // Code of other flags or another Node.js is not taken, and nothing else changes.
  const env = { NODE_OPTIONS: '--max-semi-space-size=1' }
  const slow = await run(join(top, 'bin/namegate'), ['exec', '--help'], { cwd: tmpdir(), env })
  assert.equal(slow.stdout, help.stdout)
  const other = await run(join(top, 'bin/namegate'), ['status'], { cwd: tmpdir() })
  assert.match(other.stdout, /"from":"dist"/, 'everything else is as it was')
})

test('bin/namegate says what to run when packages are missing, and exits 3', async () => {
  const { code, said } = await start(
    join(makeTree('bare', { packages: false }), 'bin/namegate'),
    '/',
  )
  assert.equal(code, 3)
  assert.match(said, /packages are missing: run 'npm ci && npm run build'/)
})
