// bin/namegate in its own tree, with a program that only prints its name. The started process is that program, from any folder, through a
// symlink, built or not.

import assert from 'node:assert/strict'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { LabProcess, run } from './support/labs/lab-process.ts'

/** Patience only: a start from sources loads the compiler, and this file gives way to kernel tests (scripts/test-lanes.mjs). */
const LIMIT_MS = 60_000

const folder = mkdtempSync(join(tmpdir(), 'namegate bin-'))
after(() => rmSync(folder, { recursive: true }))

function makeTree(
  name: string,
  parts: { readonly packages: boolean; readonly built?: 'fresh' | 'stale' },
): string {
  const top = join(folder, name)
  for (const each of ['bin', 'src', 'dist/src']) mkdirSync(join(top, each), { recursive: true })
  cpSync('bin', join(top, 'bin'), { recursive: true })
  writeFileSync(join(top, 'package.json'), '{ "type": "module" }')
  const program = (from: string) =>
    `console.log(JSON.stringify({ from: '${from}', pid: process.pid, args: process.argv.slice(2) }))`
  writeFileSync(join(top, 'src/main.ts'), program('src'))
  if (parts.packages) symlinkSync(resolve('node_modules'), join(top, 'node_modules'))
  if (parts.built === undefined) return top
  writeFileSync(join(top, 'dist/main.bundle'), `(function () { ${program('dist')} })`)
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
  const output = await child.ended(LIMIT_MS)
  return { pid, code: output?.code ?? -1, said: (output?.stdout ?? '') + (output?.stderr ?? '') }
}

const ROWS = [
  { name: 'plain', built: undefined, from: 'src', reason: 'nothing is built' },
  { name: 'fresh', built: 'fresh', from: 'dist', reason: 'dist is newer than every source' },
  { name: 'stale', built: 'stale', from: 'src', reason: 'a source is newer than dist' },
] as const

for (const { name, built, from, reason } of ROWS) {
  test(`bin/namegate starts the program of ${from}: ${reason}`, async () => {
    const top = makeTree(name, { packages: true, ...(built === undefined ? {} : { built }) })
    const link = join(folder, `${name}-link`)
    symlinkSync(join(top, 'bin/namegate'), link)
    for (const path of [join(top, 'bin/namegate'), link]) {
      const { pid, said } = await start(path, tmpdir())
      assert.deepEqual(JSON.parse(said), { from, pid, args: ['status', 'a b'] })
    }
  })
}

/** Compiling all functions takes processor time, so it is slow beside other tests, and is done once. */
async function buildBundles(top: string): Promise<void> {
  const built = join(folder, 'bundles/dist')
  if (!existsSync(built)) {
    mkdirSync(built, { recursive: true })
    cpSync('package.json', join(built, '../package.json'))
    const args = ['scripts/bundle.mjs', built]
    const { code, stderr } = await run(process.execPath, args, { limitMs: 120_000 })
    assert.equal(code, 0, stderr)
  }
  cpSync(built, join(top, 'dist'), { recursive: true })
}

/** Prints on stderr if the code cache of a program was used. */
const WITNESS = `
  const vm = require('node:vm')
  vm.Script = class extends vm.Script {
    constructor(source, options) {
      super(source, options)
      const { cachedDataRejected } = this
      console.error(options.cachedData === undefined ? 'none' : cachedDataRejected ? 'refused' : 'taken')
    }
  }`

/** Changes an octet in the middle of a file. */
function damage(path: string): void {
  const octets = readFileSync(path)
  octets[octets.length >> 1]! ^= 1
  writeFileSync(path, octets)
}

const STARTS: readonly {
  readonly reason: string
  readonly code: 'taken' | 'refused' | 'none'
  readonly flag?: string
  readonly change?: (program: string) => void
}[] = [
  { reason: 'as it was built', code: 'taken' },
  { reason: 'with other flags of V8', code: 'refused', flag: '--max-old-space-size=300' },
  { reason: 'the code is damaged', code: 'none', change: (program) => damage(`${program}.cache`) },
  {
    reason: 'the code ends early',
    code: 'none',
    change: (program) => writeFileSync(`${program}.cache`, 'x'),
  },
  {
    reason: 'there is no code cache',
    code: 'none',
    change: (program) => rmSync(`${program}.cache`),
  },
]

test('bin/namegate starts from one file, with its code cache if that is good', async () => {
  const top = makeTree('bundle', { packages: false, built: 'fresh' })
  const witness = join(folder, 'witness.cjs')
  writeFileSync(witness, WITNESS)
  await buildBundles(top)
  const programs = [
    { name: 'exec', args: ['exec', '--help'], says: /^Usage: namegate exec / },
    { name: 'main', args: ['run', '--help'], says: /^Usage: namegate run / },
    { name: 'commands', args: ['match', '*.test', 'a.test'], says: /a\.test/ },
  ]
  for (const { reason, code, flag = '', change } of STARTS) {
    for (const { name, args, says } of programs) {
      change?.(join(top, 'dist', name))
      const env = { NODE_OPTIONS: `--require "${witness}" ${flag}` }
      const { stdout, stderr } = await run(join(top, 'bin/namegate'), args, { cwd: tmpdir(), env })
      assert.equal(stderr, `${code}\n`, `${name}: ${reason}`)
      assert.match(stdout, says, `${name}: ${reason}`)
    }
  }
})

test('bin/namegate uses only the code cache of its own source', async () => {
  const top = makeTree('source', { packages: false, built: 'fresh' })
  await buildBundles(top)
  const bundle = join(top, 'dist/main.bundle')
  const text = readFileSync(bundle, 'latin1')
  writeFileSync(
    bundle,
    text.replaceAll('health, revisions, mode', 'HEALTH, REVISIONS, MODE'),
    'latin1',
  )
  const { stdout } = await run(join(top, 'bin/namegate'), ['help'], { cwd: tmpdir() })
  assert.match(stdout, /HEALTH, REVISIONS, MODE/)
})

test('bin/namegate names the command to run when the one file is incomplete, and exits 3', async () => {
  const top = makeTree('cut', { packages: false, built: 'fresh' })
  const rows: readonly (readonly [reason: string, bundle: string, text: string, args: string])[] = [
    ['the file is empty', 'main', '', 'match *.test a.test'],
    ['the file ends early', 'main', '(function (require) {', 'match *.test a.test'],
    ['the file for exec is missing', 'main', '', 'exec --help'],
    ['the file for exec is empty', 'exec', '', 'exec --help'],
  ]
  for (const [reason, bundle, text, args] of rows) {
    writeFileSync(join(top, `dist/${bundle}.bundle`), text)
    const { code, stderr } = await run(join(top, 'bin/namegate'), args.split(' '))
    assert.equal(code, 3, reason)
    assert.match(stderr, /^namegate: Cannot start from .*: run 'npm ci && npm run build' in .*\n$/)
  }
})

test('bin/namegate names the command to run when it finds no program, and exits 3', async () => {
  const { code, said } = await start(
    join(makeTree('bare', { packages: false }), 'bin/namegate'),
    '/',
  )
  assert.equal(code, 3)
  assert.match(said, /not built yet: run 'npm ci && npm run build'/)
})
