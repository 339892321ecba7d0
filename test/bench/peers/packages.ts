// The peers' programs from Debian packages, unpacked only below build/peers. Nothing is installed and no unit is started. Of the libraries,
// only those that the machine lacks are unpacked. A second run finds all of them there.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Package -> program in it. */
const PROGRAMS = {
  dnsdist: 'usr/bin/dnsdist',
  unbound: 'usr/sbin/unbound',
  'dnsmasq-base': 'usr/sbin/dnsmasq',
} as const

export type PeerPackage = keyof typeof PROGRAMS

export interface PeerProgram {
  readonly path: string
  /** The folder of the libraries that were unpacked with it. */
  readonly env: Readonly<Record<string, string>>
  readonly version: string
}

/** Unpacks the package if it is missing. Throws apt's message if it is not available. */
export function fetchPeer(cache: string, name: PeerPackage): PeerProgram {
  const folder = join(cache, name)
  if (!existsSync(folder)) unpack(cache, name)
  const libraries = join(folder, 'usr/lib', multiarch())
  const path = join(folder, PROGRAMS[name])
  const env = { LD_LIBRARY_PATH: `${libraries}:${join(folder, 'lib', multiarch())}` }
  const missing = output('ldd', [path], env)
    .split('\n')
    .filter((line) => /not found/.test(line))
  if (missing.length > 0) throw new Error(`Cannot run ${name}: ${missing.join(',')}`)
  return { path, env, version: versionOf(path, env) }
}

function unpack(cache: string, name: PeerPackage): void {
  mkdirSync(cache, { recursive: true })
  const work = mkdtempSync(join(cache, '.fetch-'))
  const packages = missingPackages(name)
  try {
    execFileSync('apt-get', ['download', ...packages], { cwd: work, stdio: 'pipe' })
  } catch {
    execFileSync('apt-get', ['update'], { stdio: 'pipe' })
    execFileSync('apt-get', ['download', ...packages], { cwd: work, stdio: 'pipe' })
  }
  const root = join(work, 'root')
  for (const file of readdirSync(work).filter((each) => each.endsWith('.deb'))) {
    execFileSync('dpkg-deb', ['-x', join(work, file), root], { stdio: 'pipe' })
  }
  renameSync(root, join(cache, name))
  rmSync(work, { recursive: true })
}

/** The package and its dependencies that are not installed, by apt's own calculation, which changes nothing. An installed package
 *  is fetched, too, so that the program always comes from the cache. */
function missingPackages(name: PeerPackage): readonly string[] {
  const plan = output('apt-get', ['-s', '--no-install-recommends', 'install', name], {})
  const found = [...plan.matchAll(/^Inst (\S+)/gm)].map(([, each]) => each ?? '')
  return [...new Set([name, ...found])]
}

function multiarch(): string {
  const arch = output('dpkg', ['--print-architecture'], {}).trim()
  return arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu'
}

function versionOf(path: string, env: Readonly<Record<string, string>>): string {
  const flag = path.endsWith('unbound') ? '-V' : '--version'
  return /\d+\.\d+(\.\d+)?/.exec(output(path, [flag], env))?.[0] ?? 'unknown version'
}

function output(command: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  return execFileSync(command, args, {
    encoding: 'utf8',
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
