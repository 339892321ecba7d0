// A machine with a systemd of its own as process 1, for tests of the units in deploy/systemd. It has namespaces for processes, mounts,
// network, names and cgroups, and this machine's root under another upper layer, so that this machine does not change. Its disk outlives
// a reboot; network, bpffs, nftables and /run do not, as on a real machine. All of it ends with the process that made it.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { messageOf } from '../../../src/core/errors.ts'
import { makeFolder } from '../../../src/native/make-folder.ts'
import { until } from '../peers/client.ts'
import { canUseLab } from './lab.ts'
import { LabProcess, run, type Output } from './lab-process.ts'

const INIT = fileURLToPath(new URL('../programs/systemd-init.sh', import.meta.url))
const SYSTEMD = '/lib/systemd/systemd'
/** A cgroup of a test machine: `ng-machine-<pid of the maker>-<number>`. The pid tells leftovers from those in use. */
const GROUP = /^ng-machine-(\d+)-/
const BOOT_MS = 20_000

/** Process 1 of a busy machine can hang for a minute in the kernel (inotify, cgroups), so these tests run only on request. */
const WANTED = 'NAMEGATE_SYSTEMD'

/** The reason why such a machine cannot run here, or undefined. Tries one. */
export async function canUseMachine(): Promise<string | undefined> {
  if (process.env[WANTED] !== '1') return `a systemd of its own wants a quiet machine: ${WANTED}=1`
  const lab = canUseLab()
  if (lab !== undefined) return lab
  if (!existsSync(SYSTEMD)) return 'systemd is not installed'
  if (findCgroups() === undefined) return 'no cgroup2 is mounted'
  const machine = new SystemdMachine({})
  try {
    await machine.boot()
    await machine.settled()
    return undefined
  } catch (error) {
    return `systemd cannot be process 1 here: ${messageOf(error).replaceAll('\n', ' ')}`
  } finally {
    await machine.close()
  }
}

let made = 0

export class SystemdMachine {
  readonly #folder = mkdtempSync(join(tmpdir(), 'namegate-machine-'))
  readonly #group = join(findCgroups() ?? '/', `ng-machine-${process.pid}-${++made}`)
  /** unshare(1), whose only child is process 1 of the test machine. */
  #outer: LabProcess | undefined
  /** The pid of process 1 on this machine; 0 while the test machine is off. */
  #first = 0
  readonly #onExit = () => this.#closeNow()

  /** `files`: path -> text, copied over the root at the first boot. */
  constructor(files: Readonly<Record<string, string>>) {
    sweep()
    process.on('exit', this.#onExit)
    mkdirSync(join(this.#folder, 'site'))
    for (const [path, text] of Object.entries(files)) {
      const file = join(this.#folder, 'site', path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
    }
  }

  /** Turns the machine on. Returns as soon as systemd accepts commands. */
  async boot(): Promise<void> {
    makeFolder(this.#group)
    const namespaces = 'pid mount uts ipc net cgroup'.split(' ').map((name) => `--${name}`)
    const unshare = ['unshare', '--fork', '--kill-child=KILL', ...namespaces]
    const init = ['sh', INIT, this.#folder, resolve('.'), process.execPath]
    // The process enters its cgroup before it makes the namespace that begins there.
    const enter = 'echo 0 >"$0/cgroup.procs"; exec "$@"'
    const inner = ['sh', '-c', enter, this.#group, ...unshare, ...init]
    const outer = new LabProcess('setpriv', ['--pdeathsig', 'KILL', ...inner])
    this.#outer = outer
    const child = (): string => {
      try {
        return readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, 'utf8').trim()
      } catch {
        return ''
      }
    }
    await outer.until(() => (isSystemd(child()) ? true : undefined), 'expected systemd', BOOT_MS)
    this.#first = Number(child())
    await outer.until(() => this.#takesOrders || undefined, 'expected its socket', BOOT_MS)
  }

  /** Waits until the enabled units have started or failed. */
  async settled(): Promise<void> {
    await this.run('systemctl', ['is-system-running', '--wait'], BOOT_MS)
  }

  /** Cuts the power. */
  async cut(): Promise<void> {
    this.#outer?.kill('SIGKILL')
    await this.#outer?.ended(5000)
    this.#first = 0
    await until('the end of its processes', () => this.#processes() === '')
  }

  async run(command: string, args: readonly string[], limitMs = 30_000): Promise<Output> {
    return await run('nsenter', [...this.#enter, command, ...args], { limitMs })
  }

  /** Starts a process inside. Its owner stops it. */
  start(command: string, args: readonly string[]): LabProcess {
    return new LabProcess('nsenter', [...this.#enter, command, ...args])
  }

  /** Output of a command. Throws if its exit code is not 0. */
  async get(command: string, ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(command, args)
    if (code !== 0) throw new Error(`${command} ${args.join(' ')}: ${code}\n${stdout}${stderr}`)
    return stdout.trim()
  }

  /** The value of a property of a unit in systemd. */
  async property(unit: string, name: string): Promise<string> {
    return await this.get('systemctl', 'show', '--value', '-p', name, unit)
  }

  /** Waits until a property matches. Throws with the output of the unit. */
  async untilProperty(unit: string, name: string, pattern: RegExp, limitMs = 60_000) {
    const end = performance.now() + limitMs
    for (;;) {
      const value = await this.property(unit, name)
      if (pattern.test(value)) return value
      if (performance.now() < end) continue
      const journal = await this.journal(unit)
      throw new Error(`${unit}: ${name} is '${value}', expected ${String(pattern)}\n${journal}`)
    }
  }

  /** The journal of a unit since the last boot. */
  async journal(unit: string): Promise<string> {
    return await this.get('journalctl', '--no-pager', '-o', 'cat', '-u', unit)
  }

  /** Writes a file of the machine while it runs. */
  async write(path: string, text: string): Promise<void> {
    await this.get('sh', '-c', 'mkdir -p "${0%/*}" && printf %s "$1" >"$0"', path, text)
  }

  async close(): Promise<void> {
    await this.cut()
    this.#closeNow()
  }

  get #enter(): readonly string[] {
    return ['--target', String(this.#first), '--all', '--']
  }

  get #takesOrders(): boolean {
    return existsSync(`/proc/${this.#first}/root/run/systemd/private`)
  }

  #processes(): string {
    if (!existsSync(this.#group)) return ''
    const files = readdirSync(this.#group, { recursive: true, encoding: 'utf8' })
    const lists = files.filter((file) => file.endsWith('cgroup.procs'))
    return lists.map((file) => readFileSync(join(this.#group, file), 'utf8')).join('')
  }

  #closeNow(): void {
    process.off('exit', this.#onExit)
    this.#outer?.kill('SIGKILL')
    removeGroup(this.#group)
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** The mount point of cgroup2. Undefined if it is not mounted. */
function findCgroups(): string | undefined {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return mounts.find((line) => / - cgroup2 /.test(line))?.split(' ')[4]
}

function isSystemd(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8') === 'systemd\n'
  } catch {
    return false
  }
}

/** Removes the cgroups of makers that no longer exist. */
function sweep(): void {
  const cgroups = findCgroups()
  if (cgroups === undefined) return
  for (const name of readdirSync(cgroups)) {
    const maker = GROUP.exec(name)?.[1]
    if (maker !== undefined && !existsSync(`/proc/${maker}`)) removeGroup(join(cgroups, name))
  }
}

/** Removes a cgroup without processes, and those below it. */
function removeGroup(path: string): void {
  if (!existsSync(path)) return
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) removeGroup(join(path, entry.name))
  }
  try {
    rmdirSync(path)
  } catch {
    // It still has processes. The next sweep removes it.
  }
}
