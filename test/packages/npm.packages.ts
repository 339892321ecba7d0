// npm run packages -- npm: makes the tarball with `npm pack` in a fresh clone, and installs it with `npm i -g` on a machine with
// Debian trixie and without a compiler: first protected connection, upgrade to a newer tarball under load, and removal. Prints a
// table. With --built it takes the tarball in build/.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run, type LabProcess } from '../support/labs/lab-process.ts'
import { firstConnections } from './first-connections.ts'
import { isWhole, lossDuring, lossText } from './load.ts'
import { Machine } from './machine.ts'
import { PackageSite, SERVER, SETTINGS } from './site.ts'
import { withReport, type Step } from './steps.ts'
import { changesOf, traces } from './traces.ts'

const MOST_OCTETS = 3_000_000
const PACK_MS = 1_800_000
/** The path in the machine. */
const TARBALL = '/namegate.tgz'
const BUILT = `build/namegate-${/"version": "(.*)"/.exec(readFileSync('package.json', 'utf8'))?.[1]}.tgz`
const NEWER = '99.0.0'
const PACKAGES = ['iproute2', 'nftables', 'libbpf1']
const RUN = ['namegate', 'run', '--config', '/etc/namegate/namegate.yaml']
/** Files that npm keeps (its cache, and its compiled code), and files that the documents let the user remove by hand. */
const KEPT =
  /^(?:root\/\.npm|tmp\/node-compile-cache|etc\/namegate|var\/lib\/namegate|run\/namegate)(?:\/|$)/

await withReport('npm i -g', async (step) => {
  const folder = mkdtempSync(join(tmpdir(), 'namegate-npm-'))
  try {
    await step('npm pack in a fresh clone', async () => {
      if (!process.argv.includes('--built')) await pack(folder)
      return contentOf(BUILT)
    })
    await tryTarball(BUILT, newerOf(BUILT, folder), step)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

/** Makes the tarball like a release. */
async function pack(folder: string): Promise<void> {
  const clone = join(folder, 'clone')
  const script = `git clone -q . '${clone}' && cd '${clone}' && npm ci --silent && npm pack --silent`
  const { code, stdout, stderr } = await run('sh', ['-c', script], { limitMs: PACK_MS })
  assert.equal(code, 0, stderr)
  copyFileSync(join(clone, stdout.trim().split('\n').at(-1) ?? ''), BUILT)
}

/** The size of the tarball and the number of its files. */
function contentOf(tarball: string): string {
  const { size } = statSync(tarball)
  assert.ok(size <= MOST_OCTETS, `${size} octets`)
  const files = execFileSync('tar', ['-tzf', tarball]).toString().trim().split('\n')
  for (const target of ['x64-glibc', 'x64-musl', 'arm64-glibc', 'arm64-musl']) {
    assert.ok(files.includes(`package/prebuilds/linux-${target}/bpf.node`), target)
  }
  return `${size} octets, ${files.length} files`
}

/** The same tarball with another version. */
function newerOf(tarball: string, folder: string): string {
  const unpacked = join(folder, 'newer')
  mkdirSync(unpacked)
  execFileSync('tar', ['-xzf', tarball, '-C', unpacked])
  const path = join(unpacked, 'package/package.json')
  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace(/"version": ".*"/, `"version": "${NEWER}"`),
  )
  execFileSync('tar', ['-czf', `${unpacked}.tgz`, '-C', unpacked, 'package'])
  return `${unpacked}.tgz`
}

async function tryTarball(tarball: string, newer: string, step: Step): Promise<void> {
  const site = new PackageSite()
  let machine: Machine | undefined
  try {
    await step('machine with Debian trixie and Node.js', async () => {
      machine = await Machine.make(...PACKAGES)
      return (
        await machine.run(
          'sh',
          '-c',
          '. /etc/os-release; echo "$PRETTY_NAME, Node.js $(node --version)"',
        )
      ).stdout.trim()
    })
    assert.ok(machine !== undefined)
    await site.serve()
    await tryMachine({ machine, site, tarball, newer, step })
  } finally {
    await site.close()
    machine?.close()
  }
}

interface Trial {
  readonly machine: Machine
  readonly site: PackageSite
  readonly tarball: string
  readonly newer: string
  readonly step: Step
}

async function tryMachine({ machine, site, tarball, newer, step }: Trial): Promise<void> {
  const before = { files: machine.files(), traces: traces(site, machine.bpffs) }
  const install = async (file: string): Promise<string> => {
    copyFileSync(file, join(machine.root, TARBALL))
    const begin = performance.now()
    await succeed(machine, 'npm', 'i', '-g', '--no-audit', '--no-fund', TARBALL)
    rmSync(join(machine.root, TARBALL))
    return `${Math.round(performance.now() - begin)} ms`
  }
  await step('npm i -g without a compiler', async () => {
    for (const compiler of ['cc', 'gcc', 'clang', 'make']) {
      assert.notEqual((await machine.run('sh', '-c', `command -v ${compiler}`)).code, 0, compiler)
    }
    const took = await install(tarball)
    return `${(await succeed(machine, 'namegate', 'version')).trim()}, ${took}`
  })
  for (const [path, text] of Object.entries(SETTINGS)) machine.write(`etc/namegate/${path}`, text)
  machine.write('etc/namegate/namegate.yaml', configuration())
  const first = machine.startIn(site.node, ...RUN)
  await step('first protected connection, and refused ones', async () => {
    const { allowed, name, address, isProtected, ms } = await firstConnections(site)
    assert.ok(isProtected, first.stderr)
    return `allowed ${allowed}, name ${name}, address ${address}, after ${ms} ms`
  })
  let second: LabProcess | undefined
  await step('upgrade under 1,000 queries a second', async () => {
    const loss = await lossDuring(site, async () => {
      await install(newer)
      second = machine.startIn(site.node, ...RUN, '--take-over')
      assert.equal((await first.ended(60_000))?.code, 0, first.stderr + second.stderr)
    })
    assert.ok(isWhole(loss), lossText(loss))
    return lossText(loss)
  })
  await step('the newer version protects', async () => {
    const status = await succeedIn(machine, site, 'namegate', 'status', '-o', 'json')
    const { version } = JSON.parse(status) as { version: string }
    assert.equal(version, NEWER)
    assert.ok((await firstConnections(site)).isProtected, second?.stderr)
    return `version ${version}`
  })
  await step('npm rm -g leaves no trace', async () => {
    // With intercept.on-start, a running daemon would restore the rules.
    await second?.stop()
    await succeedIn(machine, site, 'namegate', 'intercept', 'down')
    await succeedIn(machine, site, 'namegate', 'datapath', 'detach')
    await succeed(machine, 'npm', 'rm', '-g', 'namegate')
    const isOwn = (path: string): boolean => !KEPT.test(path)
    assert.deepEqual(changesOf(before.files, machine.files().filter(isOwn)), [])
    assert.deepEqual(changesOf(before.traces, traces(site, machine.bpffs)), [])
    const kept = machine.files().filter((path) => KEPT.test(path) && /namegate/.test(path))
    return `${kept.length} files in /etc/namegate, /run/namegate and /var/lib/namegate`
  })
}

/** deploy/systemd/tproxy.yaml with the server of the site. */
function configuration(): string {
  const text = readFileSync('deploy/systemd/tproxy.yaml', 'utf8')
  return text.replace(/^upstreams: .*$/m, `upstreams: { servers: ['${SERVER}:53'] }`)
}

async function succeed(machine: Machine, ...command: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await machine.run(...command)
  assert.equal(code, 0, `${command.join(' ')}: ${stdout}${stderr}`)
  return stdout
}

async function succeedIn(
  machine: Machine,
  site: PackageSite,
  ...command: readonly string[]
): Promise<string> {
  const { code, stdout, stderr } = await machine.runIn(site.node, ...command)
  assert.equal(code, 0, `${command.join(' ')}: ${stdout}${stderr}`)
  return stdout
}
