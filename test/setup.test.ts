// scripts/setup.sh: the tools that it finds on the machine, and its build results.

import assert from 'node:assert/strict'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'
import { mkFolder } from './support/nodes/daemon-files.ts'
import { run } from './support/labs/lab-process.ts'

/** The paths of Debian, which are not on the PATH of an ordinary user. */
const TOOLS = ['/usr/sbin/nft', '/sbin/nft', '/usr/sbin/bpftool', '/sbin/bpftool']
const skip = TOOLS.some((tool) => existsSync(tool)) ? false : 'no tool in /usr/sbin or /sbin'

test('setup.sh finds tools in /usr/sbin and /sbin, whatever the PATH is', { skip }, async () => {
  // A checkout without anything to install, build or compile.
  const folder = mkFolder()
  mkdirSync(join(folder, 'scripts'))
  copyFileSync('scripts/setup.sh', join(folder, 'scripts/setup.sh'))
  writeFileSync(join(folder, 'scripts/lock-installed.mjs'), '')
  const bin = mkFolder()
  writeFileSync(join(bin, 'id'), '#!/bin/sh\necho 1000\n', { mode: 0o755 })
  const said = async (...more: readonly string[]): Promise<string> => {
    const PATH = [bin, dirname(process.execPath), '/usr/bin', '/bin', ...more].join(':')
    const { code, stderr } = await run('/bin/sh', ['scripts/setup.sh', 'demo'], {
      cwd: folder,
      env: { PATH },
    })
    assert.equal(code, 0, stderr)
    return stderr
  }
  assert.equal(await said(), await said('/usr/sbin', '/sbin'))
  assert.doesNotMatch(await said(), /nftables|bpftool/)
})

const isRoot = process.getuid?.() === 0 ? false : 'hiding headers needs root'

test('setup.sh names libuv1-dev when no header of libuv is there', { skip: isRoot }, async () => {
  const folder = mkFolder()
  mkdirSync(join(folder, 'scripts'))
  copyFileSync('scripts/setup.sh', join(folder, 'scripts/setup.sh'))
  writeFileSync(join(folder, 'scripts/lock-installed.mjs'), '')
  const setup = 'NPM_CONFIG_NODEDIR= exec sh scripts/setup.sh build'
  const own = resolve(process.execPath, '../../include')
  const hide = [...new Set([own, '/usr/include'])].map((each) => `mount -t tmpfs none ${each}`)
  for (const [script, isNamed] of [
    [`mkdir -p ${own} && ${hide.join(' && ')} && ${setup}`, true],
    [`mkdir -p /usr/include/node && touch /usr/include/node/uv.h && ${setup}`, false],
  ] as const) {
    const inside = `mount -t tmpfs none /usr/include && ${script}`
    const { stderr } = await run('unshare', ['--mount', 'sh', '-c', inside], { cwd: folder })
    assert.match(stderr, /apt-get install .*libc6-dev/)
    assert.equal(/apt-get install .*libuv1-dev/.test(stderr), isNamed, stderr)
  }
})

const BUILT = existsSync('dist/src/main.js.map') ? false : 'dist/ is not built: npm run build'

test('Source maps in dist/ refer to existing files', { skip: BUILT }, () => {
  const maps = readdirSync('dist', { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.js.map'))
    .map((file) => join('dist', file))
  assert.ok(maps.length > 100)
  const lost = maps.flatMap((file) => {
    const { sources } = JSON.parse(readFileSync(file, 'utf8')) as { sources: readonly string[] }
    const paths = sources.map((source) => resolve(dirname(file), source))
    return paths.filter((path) => !existsSync(path) || !path.startsWith(resolve('src')))
  })
  assert.deepEqual(lost, [])
})
