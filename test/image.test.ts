// What the Dockerfile's build stage makes, by the same script in a clean tree: a program that is complete, runs from
// any folder and brings no tests, no sources of tests and no development packages.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { run } from './support/labs/lab-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-image-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** As `COPY . .` does: what is in the repository, but for what .dockerignore leaves out. */
function copySources(): void {
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const ignored = readFileSync('.dockerignore', 'utf8').split('\n').filter(Boolean)
  const files = execFileSync('git', list, { encoding: 'utf8' })
    .split('\0')
    .filter(
      (file) => file !== '' && existsSync(file) && !ignored.includes(file.split('/')[0] ?? ''),
    )
  execFileSync('tar', ['-cf', join(folder, 'sources.tar'), '--null', '-T', '-'], {
    input: files.join('\0'),
  })
  execFileSync('tar', ['-xf', 'sources.tar'], { cwd: folder })
  rmSync(join(folder, 'sources.tar'))
}

test('scripts/image.sh makes what the image holds, complete and without what only tests need', async () => {
  copySources()
  const steps = [
    ...readFileSync('Dockerfile', 'utf8').matchAll(/^RUN sh scripts\/image\.sh (.+)$/gm),
  ]
  assert.deepEqual(
    steps.map(([, step]) => step),
    ['build-packages', 'build'],
  )
  const options = { cwd: folder, limitMs: 240_000 }
  const { code, stdout, stderr } = await run('sh', ['scripts/image.sh', 'build'], options)
  assert.equal(code, 0, stdout + stderr)
  const version = await run(join(folder, 'bin/namegate'), ['version'], { cwd: tmpdir() })
  assert.match(version.stdout, /^namegate \d+\.\d+\.\d+/, version.stderr)
  const check = await run(
    join(folder, 'bin/namegate'),
    ['config', 'check', 'config/namegate.yaml'],
    {
      cwd: folder,
    },
  )
  assert.equal(check.code, 0, check.stderr)
  for (const gone of ['test', 'demo', 'node_modules/typescript', 'node_modules/fast-check']) {
    assert.ok(!existsSync(join(folder, gone)), `${gone} is not in the image`)
  }
  const built = readdirSync(join(folder, 'build/Release')).sort()
  assert.deepEqual(built, readdirSync('build/Release').sort(), 'every native part is there')
  assert.ok(existsSync(join(folder, 'build/namegate.bpf.o')))
})
