// A machine with Debian, booted by systemd-nspawn in the network namespace of the site's node, with systemd, apt and dpkg of that release.
// debootstrap makes the base system once in build/packages/, and no test changes it.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { copyFileSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LabProcess, run, type Output } from '../support/labs/lab-process.ts'
import type { PackageSite } from './site.ts'

const BOOT = fileURLToPath(new URL('debian-machine.sh', import.meta.url))
const ROOTS = resolve('build/packages')
const HIERARCHIES = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified', '/sys/fs/cgroup/systemd']
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const ENV = [
  'env',
  '-i',
  `PATH=${PATH}`,
  'HOME=/root',
  'DEBIAN_FRONTEND=noninteractive',
  'LC_ALL=C.UTF-8',
]
const MAKE_MS = 1_800_000
const BOOT_MS = 120_000
const COMMAND_MS = 300_000

/** Makes the base system of a release if it is missing, with the archives of `packages` and their dependencies. */
export async function debianRoot(release: string, packages: readonly string[]): Promise<string> {
  const root = join(ROOTS, release)
  if (!existsSync(root)) {
    const made = `${root}.new`
    rmSync(made, { recursive: true, force: true })
    mkdirSync(ROOTS, { recursive: true })
    const include = '--include=systemd,systemd-sysv,dbus'
    await succeeds('unshare', [
      '--mount',
      'debootstrap',
      '--variant=minbase',
      include,
      release,
      made,
    ])
    renameSync(made, root)
  }
  if (!existsSync(join(root, '.archives'))) {
    const download = `apt-get update && apt-get install -y --no-install-recommends --download-only ${packages.join(' ')} && touch /.archives`
    await succeeds('chroot', [root, ...ENV, 'sh', '-c', download])
  }
  return root
}

async function succeeds(command: string, args: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await run(command, args, { limitMs: MAKE_MS })
  if (code !== 0) throw new Error(`${command} ${args.join(' ')}: ${code}\n${stdout}${stderr}`)
}

let made = 0

export class DebianMachine {
  readonly #folder = mkdtempSync(join(tmpdir(), 'namegate-debian-'))
  readonly #group = `ng-debian-${process.pid}-${++made}`
  readonly #outer: LabProcess
  #first = 0
  readonly #onExit = () => this.#closeNow()

  private constructor(root: string, site: PackageSite) {
    process.on('exit', this.#onExit)
    const args = [this.#group, root, this.#folder, site.node.namespace, site.resolvConf]
    const words = ['unshare', '--mount', '--propagation', 'private', 'sh', BOOT, ...args]
    this.#outer = new LabProcess('setpriv', ['--pdeathsig', 'KILL', ...words])
  }

  /** Boots a machine. Returns when its systemd has started the enabled units. */
  static async boot(root: string, site: PackageSite): Promise<DebianMachine> {
    const machine = new DebianMachine(root, site)
    await machine.#booted()
    await machine.run('systemctl is-system-running --wait')
    return machine
  }

  /** Copies a file of this machine into /mnt there. */
  share(file: string): string {
    copyFileSync(file, join(this.#folder, 'share', basename(file)))
    return `/mnt/${basename(file)}`
  }

  /** Runs a line of sh. */
  async run(line: string, limitMs = COMMAND_MS): Promise<Output> {
    const enter = [
      '--target',
      String(this.#first),
      '--mount',
      '--uts',
      '--ipc',
      '--net',
      '--pid',
      '--cgroup',
    ]
    return await run('nsenter', [...enter, '--', ...ENV, 'sh', '-c', line], { limitMs })
  }

  /** Output of a line of sh. Throws if its exit code is not 0. */
  async get(line: string): Promise<string> {
    const { code, stdout, stderr } = await this.run(line)
    if (code !== 0) throw new Error(`${line}: ${code}\n${stdout}${stderr}`)
    return stdout.trim()
  }

  async close(): Promise<void> {
    this.#outer.kill('SIGKILL')
    await this.#outer.ended(10_000)
    this.#closeNow()
  }

  async #booted(): Promise<void> {
    const find = (): true | undefined => {
      this.#first = this.#child()
      return existsSync(`/proc/${this.#first}/root/run/systemd/private`) ? true : undefined
    }
    await this.#outer.until(find, 'expected systemd', BOOT_MS)
  }

  /** The pid of the machine's process 1 on this machine; 0 before its start. */
  #child(): number {
    try {
      const { pid } = this.#outer
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
      return Number(children.find((each) => commandOf(each) === 'systemd') ?? 0)
    } catch {
      return 0
    }
  }

  #closeNow(): void {
    process.off('exit', this.#onExit)
    this.#outer.kill('SIGKILL')
    for (const hierarchy of HIERARCHIES) removeGroup(join(hierarchy, this.#group))
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function commandOf(pid: string): string {
  return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
}

/** Ends the processes of a cgroup, and removes it with those below it. */
function removeGroup(path: string): void {
  if (!existsSync(path)) return
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) removeGroup(join(path, entry.name))
  }
  for (const pid of readFileSync(join(path, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean)) {
    killHard(Number(pid))
  }
  try {
    rmdirSync(path)
  } catch {
    // It still has a process.
  }
}

function killHard(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has already ended.
  }
}
