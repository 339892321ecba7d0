// A machine with Debian and Node.js in a folder, without a compiler. Its commands run in a chroot with /proc, /dev and a bpffs of their own,
// in the network of this machine to install packages, or in that of a host of the site.

import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Host } from '../support/labs/lab.ts'
import { run, type LabProcess, type Output } from '../support/labs/lab-process.ts'

const MAKE_MS = 900_000
const COMMAND_MS = 300_000
/** Mounts for every command, in a mount namespace of its own. */
const MOUNT = [
  'set -e',
  'mount -t proc proc "$0/proc"',
  'mount --rbind /dev "$0/dev"',
  'mount -t sysfs sysfs "$0/sys"',
  'mount --bind "$0.bpf" "$0/sys/fs/bpf"',
  'exec chroot "$0" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"',
].join('\n')

export class Machine {
  readonly #folder = mkdtempSync(join(tmpdir(), 'namegate-machine-'))
  readonly root = join(this.#folder, 'root')
  /** The bpffs of the machine, as a path of this machine. */
  readonly bpffs = `${this.root}.bpf`

  private constructor() {
    for (const each of [this.root, this.bpffs]) mkdirSync(each)
    execFileSync('mount', ['-t', 'bpf', 'bpf', this.bpffs])
    process.once('exit', () => this.close())
  }

  /** Makes a machine with these Debian packages. */
  static async make(...packages: readonly string[]): Promise<Machine> {
    const machine = new Machine()
    const limit = { limitMs: MAKE_MS }
    const made = await run('sh', ['scripts/image-base.sh', 'npm', machine.root], limit)
    if (made.code !== 0) throw new Error(made.stderr)
    copyFileSync('/etc/resolv.conf', join(machine.root, 'etc/resolv.conf'))
    const install = `apt-get update && apt-get install -y --no-install-recommends ${packages.join(' ')}`
    const { code, stderr } = await machine.run('sh', '-c', install)
    if (code !== 0) throw new Error(stderr)
    return machine
  }

  /** Runs a command in the network of this machine. */
  async run(...command: readonly string[]): Promise<Output> {
    return await run('unshare', this.#words(command), { limitMs: COMMAND_MS })
  }

  async runIn(host: Host, ...command: readonly string[]): Promise<Output> {
    return await host.run('unshare', this.#words(command))
  }

  startIn(host: Host, ...command: readonly string[]): LabProcess {
    return host.start('unshare', this.#words(command))
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true })
    writeFileSync(join(this.root, path), text)
  }

  /** Paths of all its files and folders. Follows no link, because links of the machine lead to files of this machine. */
  files(): readonly string[] {
    const options = { encoding: 'utf8', maxBuffer: 64 << 20 } as const
    const paths = execFileSync('find', [this.root, '-mindepth', '1', '-printf', '%P\n'], options)
    return paths.trimEnd().split('\n').toSorted()
  }

  close(): void {
    try {
      execFileSync('umount', [this.bpffs], { stdio: 'ignore' })
    } catch {
      // It is already closed.
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #words(command: readonly string[]): readonly string[] {
    return ['--mount', '--propagation', 'private', 'sh', '-c', MOUNT, this.root, ...command]
  }
}
