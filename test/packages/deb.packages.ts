// npm run packages -- deb [RELEASE...]: builds the Debian package twice and compares the octets, checks it with lintian, and
// tries it on Debian 12 and 13, each booted by systemd-nspawn. Prints a table for each. With --built it takes the packages in
// build/packages/.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../support/labs/lab-process.ts'
import { debianRoot } from './debian-machine.ts'
import { tryWithoutSystemd } from './debian-chroot.ts'
import { tryOnDebian, type Packages } from './debian-trial.ts'
import { withReport, type Step } from './steps.ts'

const RELEASES = ['bookworm', 'trixie']
const NEEDS = ['libbpf1', 'iproute2', 'nftables']
const VERSION = /"version": "(.*)"/.exec(readFileSync('package.json', 'utf8'))?.[1] ?? ''
const NEWER = '99.0.0'
const FOLDER = 'build/packages'
const BUILD_MS = 1_800_000

const chosen = process.argv.slice(2).filter((word) => RELEASES.includes(word))

async function build(version: string, folder: string): Promise<string> {
  const file = join(folder, `namegate_${version}_${arch()}.deb`)
  if (process.argv.includes('--built') && existsSync(file)) return file
  // A fast compression is enough: the trial compares and tries the octets below it.
  const args = ['scripts/deb.sh', '--level', '0', '--version', version, '--out', folder]
  const { code, stdout, stderr } = await run('sh', args, { limitMs: BUILD_MS })
  assert.equal(code, 0, stdout + stderr)
  return file
}

function arch(): string {
  return execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim()
}

function sum(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}

async function buildAll(step: Step): Promise<Packages> {
  const first = join(FOLDER, `namegate_${VERSION}_${arch()}.deb`)
  await step('two builds give the same octets', async () => {
    await build(VERSION, FOLDER)
    const again = await build(VERSION, join(FOLDER, 'again'))
    assert.equal(sum(again), sum(first))
    return `sha256 ${sum(first).slice(0, 16)}..., ${(statSync(first).size / 1e6).toFixed(1)} MB at level 0`
  })
  await step('lintian has no finding', async () => {
    const { code, stdout, stderr } = await run('lintian', ['--allow-root', first], {
      limitMs: BUILD_MS,
    })
    assert.equal(stdout + stderr, '')
    assert.equal(code, 0)
    return 'no error, no warning'
  })
  return { first, newer: await build(NEWER, FOLDER), newerVersion: NEWER }
}

let packages: Packages | undefined
await withReport('package', async (step) => void (packages = await buildAll(step)))
for (const release of chosen.length > 0 ? chosen : RELEASES) {
  const built = packages
  if (built === undefined) break
  await withReport(release, async (step) => {
    const root = await debianRoot(release, NEEDS)
    await tryOnDebian(root, built, step)
    await tryWithoutSystemd(root, built, step)
  })
}
