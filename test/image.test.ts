// The files that the image keeps of a built copy of the sources, by the script of the Dockerfile. The program is complete, runs from any
// folder, and contains no tests, sources or development packages. `npm run packages -- oci` builds such a copy and the whole image.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { LIBRARIES } from '../src/admin/page/files.ts'
import { run } from './support/labs/lab-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-image-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const BUILT = ['dist/main.bundle', 'build/Release/bpf.node', 'build/namegate.bpf.o']
const lost = BUILT.find((part) => !existsSync(part))
const skip = lost === undefined ? false : `${lost} is not built`
/** Packages in node_modules that stay, and some that do not. */
const PACKAGES = ['preact', 'htm', 'uplot', 'typescript', 'fast-check', 'zod']

/** The state after `scripts/image.sh build`: the files of the repository and the build results. Linked, because a copy takes seconds. */
function linkBuilt(): void {
  const own = readdirSync('.').filter((name) => !/^(?:\.git|node_modules|build|var)$/.test(name))
  const native = readdirSync('build').filter((name) => /^Release$|\.o$|\.log$/.test(name))
  for (const [parts, into] of [
    [own, '.'],
    [native.map((name) => join('build', name)), 'build'],
    [PACKAGES.map((name) => join('node_modules', name)), 'node_modules'],
  ] as const) {
    mkdirSync(join(folder, into), { recursive: true })
    execFileSync('cp', ['-al', ...parts, join(folder, into)])
  }
}

test('Dockerfile runs each step of scripts/image.sh, in their order', () => {
  const steps = [
    ...readFileSync('Dockerfile', 'utf8').matchAll(/\bsh \S*scripts\/image\.sh ([a-z-]+)/g),
  ]
  assert.deepEqual(
    steps.map(([, step]) => step),
    ['build-packages', 'build', 'keep', 'run-packages'],
  )
})

test(
  'scripts/image.sh keeps the files of the image, complete and without files for tests',
  { skip },
  async () => {
    linkBuilt()
    const keep = async () => await run('sh', ['scripts/image.sh', 'keep'], { cwd: folder })
    writeFileSync(join(folder, '.git'), '')
    assert.match((await keep()).stderr, /this is a checkout/, 'it removes nothing from a checkout')
    assert.ok(existsSync(join(folder, 'src')))
    rmSync(join(folder, '.git'))
    const { code, stdout, stderr } = await keep()
    assert.equal(code, 0, stdout + stderr)
    const program = join(folder, 'bin/namegate')
    const version = await run(program, ['version'], { cwd: tmpdir() })
    assert.match(version.stdout, /^namegate \d+\.\d+\.\d+/, version.stderr)
    const check = await run(program, ['config', 'check', 'config/namegate.yaml'])
    assert.equal(check.code, 0, check.stderr)
    const all = 'LICENSE bin build dist node_modules package.json page scripts'.split(' ')
    assert.deepEqual(readdirSync(folder).toSorted(), all, 'without test, demo and src')
    const served = new Set(Object.values(LIBRARIES).map(([name]) => name))
    assert.deepEqual(new Set(readdirSync(join(folder, 'node_modules'))), served)
    const bundles = readdirSync('dist').filter((name) => /\.(?:bundle|cache)$/.test(name))
    assert.deepEqual(readdirSync(join(folder, 'dist')).toSorted(), bundles.toSorted())
    const built = readdirSync(join(folder, 'build/Release')).toSorted()
    assert.deepEqual(built, readdirSync('build/Release').toSorted(), 'every native part exists')
    assert.ok(existsSync(join(folder, 'build/namegate.bpf.o')))
  },
)
