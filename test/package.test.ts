// The npm package as a user has it: packed with the native part of this machine, installed by npm from a registry on loopback into an empty
// folder, and run from there. The four targets of a release need cross compilers, and are not built here.

import assert from 'node:assert/strict'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { run, type Output } from './support/labs/lab-process.ts'
import { NpmRegistry } from './support/peers/npm-registry.ts'

const PARTS = [
  'dist/main.bundle',
  'dist/exec.bundle',
  'dist/seldom.bundle',
  'build/Release/bpf.node',
  'build/namegate.bpf.o',
]
const lost = PARTS.find((part) => !existsSync(part))
const skip = lost === undefined ? false : `${lost} is not built`
const LIMIT_MS = 120_000
/** Octets of the tarball with all four targets. A tarball of one target leaves room for three more. */
const MOST = 3_000_000
const OTHER_TARGETS = 475_000
/** namegate-cni of this machine contains glibc. That of a release contains musl, and is smaller by this. */
const GLIBC = 290_000

const folder = mkdtempSync(join(tmpdir(), 'namegate-package-'))
const prefix = join(folder, 'prefix')
const installed = join(prefix, 'lib/node_modules/namegate')
let registry: NpmRegistry
let tarball = ''

before(async () => {
  if (skip !== false) return
  tarball = await pack()
  registry = await NpmRegistry.start(tarball)
})
after(async () => {
  if (skip === false) await registry.stop()
  rmSync(folder, { recursive: true })
})

/** Packs a copy of what the package can hold, so that the checkout gets no prebuilds. */
async function pack(): Promise<string> {
  const tree = join(folder, 'tree')
  for (const each of [
    'bin',
    'config',
    'deploy',
    'docs',
    'page',
    'dist',
    'scripts',
    'package.json',
    'src',
  ]) {
    const isNeeded = (path: string) => !/\.(?:cache|map)$/.test(path)
    cpSync(each, join(tree, each), { recursive: true, filter: isNeeded })
  }
  for (const each of ['LICENSE', 'README.md', 'ARCHITECTURE.md', 'CHANGELOG.md']) {
    cpSync(each, join(tree, each))
  }
  cpSync('build/Release', join(tree, 'build/Release'), { recursive: true })
  for (const each of ['namegate.bpf.o', 'namegate-gate.bpf.o']) {
    cpSync(join('build', each), join(tree, 'build', each))
  }
  // The package leaves these existing files out.
  writeFileSync(join(tree, 'dist/main.cache'), '')
  writeFileSync(join(tree, 'dist/src/main.js.map'), '')
  succeeded(await run('sh', ['scripts/prebuild.sh', 'host'], { cwd: tree, limitMs: LIMIT_MS }))
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]
  const { stdout } = succeeded(await run('npm', args, { cwd: tree, limitMs: LIMIT_MS }))
  return join(folder, stdout.trim().split('\n').at(-1) ?? '')
}

function succeeded(output: Output): Output {
  assert.equal(output.code, 0, output.stdout + output.stderr)
  return output
}

/** Runs npm with the registry on loopback and a cache of its own, in a new empty folder. */
async function npm(
  more: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<Output> {
  const cwd = mkdtempSync(join(folder, 'empty-'))
  const env = {
    npm_config_registry: registry.url,
    npm_config_cache: join(folder, 'cache'),
    npm_config_noproxy: '*',
    npm_config_update_notifier: 'false',
    npm_config_fund: 'false',
    npm_config_audit: 'false',
    ...more,
  }
  return run('npm', args, { cwd, env, limitMs: LIMIT_MS })
}

/** Files of the installed package below a folder, without their folders. */
function filesBelow(part: string): readonly string[] {
  return readdirSync(join(installed, part), { recursive: true, encoding: 'utf8' })
}

test('npm i -g installs namegate, which runs from an empty folder', { skip }, async () => {
  succeeded(await npm({}, 'install', '--global', '--prefix', prefix, 'namegate'))
  const program = join(prefix, 'bin/namegate')
  const { stdout } = succeeded(await run(program, ['version'], { cwd: tmpdir() }))
  assert.match(stdout, /^namegate \d+\.\d+\.\d+/)
})

test(
  'The package has the program, documents and the native part, and no files for developers',
  { skip },
  () => {
    const all = filesBelow('.').filter((file) => !file.startsWith('node_modules'))
    const unwanted = all.filter((file) =>
      /(?<!\.d)\.ts$|\.map$|^(?:src|test|scripts|build)(?:\/|$)/.test(file),
    )
    assert.deepEqual(unwanted, [])
    for (const each of [
      'docs/policies.md',
      'docs/reference/commands.md',
      'LICENSE',
      'CHANGELOG.md',
    ]) {
      assert.ok(all.includes(each), each)
    }
    const [target = '', ...more] = filesBelow('prebuilds').filter((name) =>
      /^linux-[^/]+$/.test(name),
    )
    assert.deepEqual(more, [])
    assert.deepEqual(
      filesBelow(`prebuilds/${target}`).toSorted(),
      readdirSync('build/Release').toSorted(),
    )
    assert.deepEqual(filesBelow('prebuilds/bpf').toSorted(), [
      'namegate-gate.bpf.o',
      'namegate.bpf.o',
    ])
    assert.ok((statSync(join(installed, 'prebuilds', target, 'sandbox')).mode & 0o111) === 0o111)
    const size = statSync(tarball).size - GLIBC + OTHER_TARGETS
    assert.ok(size < MOST, `${size} octets`)
  },
)

test('Every addon of the package loads, and the launcher starts', { skip }, async () => {
  const [target = ''] = filesBelow('prebuilds').filter((name) => /^linux-[^/]+$/.test(name))
  const addons = filesBelow(`prebuilds/${target}`).filter((name) => name.endsWith('.node'))
  assert.equal(addons.length, 6)
  for (const addon of addons) {
    const file = join(installed, 'prebuilds', target, addon)
    const script = `console.log(Object.keys(require(${JSON.stringify(file)})).length > 0)`
    const { stdout } = succeeded(await run(process.execPath, ['-e', script]))
    assert.equal(stdout, 'true\n', addon)
  }
})

test(
  'The first start makes the code of the program, and later starts use it',
  { skip },
  async () => {
    const code = join(installed, 'dist/exec.cache')
    rmSync(code, { force: true })
    const program = join(prefix, 'bin/namegate')
    const start = async () => succeeded(await run(program, ['exec', '--help'], { cwd: tmpdir() }))
    await start()
    const made = statSync(code)
    assert.ok(made.size > 100_000)
    await start()
    assert.equal(statSync(code).ino, made.ino, 'it is written once')
    assert.deepEqual(
      readdirSync(join(installed, 'dist')).filter((name) => /cache\./.test(name)),
      [],
    )
  },
)

test(
  'npm refuses a processor without a native part, and names the supported ones',
  { skip },
  async () => {
    const other = join(folder, 'other.cjs')
    writeFileSync(other, "Object.defineProperty(process, 'arch', { value: 'riscv64' })")
    const { code, stderr } = await npm(
      { NODE_OPTIONS: `--require ${other}` },
      'install',
      'namegate',
    )
    assert.notEqual(code, 0)
    assert.match(stderr, /EBADPLATFORM/)
    for (const supported of ['linux', 'x64', 'arm64', 'glibc', 'musl']) {
      assert.ok(stderr.includes(supported), `${supported} in ${stderr}`)
    }
  },
)

test(
  'A package on a machine for which it has no native part names the supported ones, and exits 3',
  { skip },
  async () => {
    const copy = join(folder, 'copy')
    mkdirSync(copy)
    for (const each of ['bin', 'dist', 'package.json', 'prebuilds']) {
      cpSync(join(installed, each), join(copy, each), { recursive: true })
    }
    for (const target of readdirSync(join(copy, 'prebuilds'))) {
      if (target !== 'bpf')
        renameSync(join(copy, 'prebuilds', target), join(copy, 'prebuilds/linux-s390x-glibc'))
    }
    const { code, stderr } = await run(join(copy, 'bin/namegate'), ['version'])
    assert.equal(code, 3)
    assert.match(
      stderr,
      /^namegate: Cannot run on linux-\w+: this package supports linux-s390x-glibc\n$/,
    )
  },
)
