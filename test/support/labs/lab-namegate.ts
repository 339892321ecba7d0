// namegate inside a lab's node, for kernel tests: a folder with its configuration, its own pins, the daemon as a process, commands, and
// the kernel's maps, read by their pins. `close` removes all of it.
// The maps are read only through the pins, so everything here also works while the daemon is stopped or killed.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { formatPrefix } from '../../../src/core/ip.ts'
import type { DatapathDump, PolicyEntry } from '../../../src/datapath/entries.ts'
import { pinDirectory } from '../../../src/datapath/ebpf/maps/bpffs.ts'
import { readDump } from '../../../src/datapath/ebpf/maps/dump.ts'
import { MAP_SHAPES, STAT_NAMES } from '../../../src/datapath/ebpf/maps/layout.ts'
import { openMaps } from '../../../src/datapath/ebpf/maps/kernel-map.ts'
import { nativeFile } from '../../../src/native/native-files.ts'
import { loadBpf } from '../../../src/native/native.ts'
import { pinLockFile } from '../../../src/state/lock.ts'
import { pinNoteFile } from '../../../src/daemon/noted-pins.ts'
import { http } from '../nodes/admin.ts'
import { until } from '../peers/client.ts'
import { canUseLab } from './lab.ts'
import { configText, type NamegateHosts, type NamegateOptions } from './lab-namegate-config.ts'
import { run, type LabProcess, type Output } from './lab-process.ts'
import { programArgs } from './program.ts'

const COMMAND = fileURLToPath(new URL('../../../bin/namegate', import.meta.url))
const HELD = fileURLToPath(new URL('../nodes/held-daemon.ts', import.meta.url))
const BPFFS = '/sys/fs/bpf'

export interface StartOptions {
  /** Only for tests: the delays of the datapath's writer, and whether answers wait for it (held-daemon.ts). */
  readonly writer?: { readonly stalledMs: readonly number[]; readonly isHeld: boolean }
  /** Interfaces of the node that must have the programs before `start` returns; default: every pod's. */
  readonly attached?: readonly string[]
  /** The program of another version; default: of this one. */
  readonly command?: string
}

/** The reason why the eBPF datapath cannot be used here, or undefined. */
export function canUseNamegate(): string | undefined {
  const lab = canUseLab()
  if (lab !== undefined) return lab
  for (const file of ['bpf.node', 'posix.node', 'namegate.bpf.o']) {
    if (!existsSync(nativeFile(file))) return `${file} is not built`
  }
  return undefined
}

let made = 0

export class Namegate {
  readonly folder: string
  readonly pinPath: string
  readonly #lab: NamegateHosts
  #daemon: LabProcess | undefined
  readonly #onExit = () => this.closeNow()

  constructor(lab: NamegateHosts, options: NamegateOptions) {
    this.#lab = lab
    const name = `ng-test-${process.pid}-${++made}`
    this.folder = mkdtempSync(join(tmpdir(), `${name}-`))
    this.pinPath = join(BPFFS, name)
    process.on('exit', this.#onExit)
    this.writeConfig(options)
  }

  /** The daemon's process id; 0 before its start. */
  get pid(): number {
    return this.#daemon?.pid ?? 0
  }

  get daemon(): LabProcess {
    if (this.#daemon === undefined) throw new Error('namegate was not started')
    return this.#daemon
  }

  get configFile(): string {
    return join(this.folder, 'namegate.yaml')
  }

  /** Writes the files again. */
  writeConfig(options: NamegateOptions): void {
    this.writePolicies(options.policies)
    const endpoints = options.endpoints.map((item) => `  - ${item}\n`).join('')
    writeFileSync(
      join(this.folder, 'endpoints.yaml'),
      endpoints === '' ? 'endpoints: []\n' : `endpoints:\n${endpoints}`,
    )
    writeFileSync(this.configFile, configText(this.#lab, this, options))
  }

  /** Replaces the policy files. */
  writePolicies(policies: Readonly<Record<string, string>>): void {
    const folder = join(this.folder, 'policies')
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
    for (const [name, text] of Object.entries(policies)) writeFileSync(join(folder, name), text)
  }

  /** Starts the daemon and waits until it is ready and the endpoints' hooks are attached. */
  async start(options: StartOptions = {}): Promise<void> {
    const { writer, attached = this.#lab.pods.map((pod) => pod.interface) } = options
    const { command = COMMAND } = options
    if (writer === undefined) {
      this.launch(command)
      await this.#untilReady()
    } else {
      const how = [writer.isHeld ? 'held' : 'unheld', writer.stalledMs.join(',')]
      const args = programArgs(HELD, this.configFile, ...how)
      this.#daemon = this.#lab.node.start(process.execPath, args)
      await this.#daemon.untilOutput(/^ready$/m)
    }
    for (const name of attached) {
      await this.daemon.until(
        () => (this.isAttached(name) ? true : undefined),
        `expected the programs on ${name}`,
      )
    }
  }

  /** Starts the daemon without waiting. */
  launch(command: string): void {
    const args = ['run', '--config', this.configFile]
    this.#daemon = this.#lab.node.start(command, args, { env: { NO_COLOR: '1' } })
  }

  async #untilReady(): Promise<void> {
    const deadline = performance.now() + 30_000
    for (;;) {
      const status = await this.status().catch((error: unknown) => ({ ready: String(error) }))
      if (status['ready'] === true) return
      const { running, stdout: log, stderr: faults } = this.daemon
      if (!running || performance.now() > deadline) {
        const report = `${JSON.stringify(status)}\n${log}${faults}`
        throw new Error(`namegate did not become ready\n${report}`)
      }
      await sleep(20)
    }
  }

  /** Whether an interface of the node has the filters that judge and follow. */
  isAttached(name: string): boolean {
    const show = (side: string): string =>
      execFileSync('nsenter', [...this.#net, 'tc', 'filter', 'show', 'dev', name, side], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      })
    try {
      return show('ingress').includes('ng_tc_') && show('egress').includes('ng_tc_')
    } catch {
      return false
    }
  }

  /** `bin/namegate ARGS --config FILE` in the node. */
  async run(...args: readonly string[]): Promise<Output> {
    return await this.#lab.node.run(COMMAND, [...args, '--config', this.configFile], {
      env: { NO_COLOR: '1' },
    })
  }

  /** The status from the daemon's admin socket. */
  async status(): Promise<Readonly<Record<string, unknown>>> {
    return (await this.get('status')) as Readonly<Record<string, unknown>>
  }

  /** The JSON output of `namegate get TABLE`, from the admin socket. A command would take processor time from the daemon. */
  async get(table: string): Promise<unknown> {
    const { text } = await http({ socketPath: join(this.folder, 'admin.sock') }, `/v1/${table}`)
    return JSON.parse(text)
  }

  /** Waits until every endpoint is enforced. */
  async untilEnforced(): Promise<void> {
    const isSo = async (): Promise<boolean> => {
      const rows = (await this.get('endpoints')) as readonly { enforcing: boolean }[]
      return rows.length > 0 && rows.every(({ enforcing }) => enforcing)
    }
    await until('the endpoints are enforced', isSo, 15_000, 20)
  }

  /** Sends SIGKILL to the daemon itself. The kernel's maps and programs stay. */
  async kill(): Promise<void> {
    this.daemon.kill('SIGKILL')
    await this.daemon.ended(5000)
  }

  /** Stops the daemon in order. The kernel continues to enforce. */
  async stop(): Promise<void> {
    await this.#daemon?.stop()
  }

  /** Path of one pinned map, for bpftool. */
  pin(map: string): string {
    return join(pinDirectory(this.pinPath), map)
  }

  /** All contents of the kernel's maps, read through the pins. */
  dump(): DatapathDump {
    const bpf = loadBpf()
    const fds: Record<string, number> = {}
    for (const name of Object.keys(MAP_SHAPES)) fds[name] = bpf.openPin(this.pin(name))
    try {
      return readDump(openMaps(bpf, fds))
    } finally {
      for (const fd of Object.values(fds)) if (fd >= 0) bpf.close(fd)
    }
  }

  /** ng_ipcache: `198.18.0.1/32` -> identity. */
  prefixes(): ReadonlyMap<string, number> {
    const { prefixes } = this.dump()
    const found = new Map<string, number>()
    for (let i = 0; i < prefixes.count; i++) {
      found.set(formatPrefix(prefixes.prefix(i)), prefixes.identity(i))
    }
    return found
  }

  policies(): readonly PolicyEntry[] {
    return this.dump().policies
  }

  /** A counter of ng_stats over all CPUs, as bpftool reads it. */
  async stat(name: (typeof STAT_NAMES)[number]): Promise<number> {
    const at = Uint32Array.of(STAT_NAMES.indexOf(name))
    const key = Buffer.from(at.buffer).toString('hex').match(/../g) ?? []
    const { values } = (await this.bpftool(
      'map',
      'lookup',
      'pinned',
      this.pin('ng_stats'),
      'key',
      'hex',
      ...key,
    )) as { values: { value: string[] }[] }
    return values.reduce((sum, { value }) => sum + numberOf(value), 0)
  }

  /** `bpftool -j ARGS`, parsed. Undefined if it printed nothing. Throws if it fails. */
  async bpftool(...args: readonly string[]): Promise<unknown> {
    const { code, stdout, stderr } = await run('bpftool', ['-j', ...args])
    if (code !== 0) throw new Error(`bpftool ${args.join(' ')}: ${stdout}${stderr}`)
    return stdout.trim() === '' ? undefined : JSON.parse(stdout)
  }

  /** Ends the daemon, then removes its folder and its pins, and so also the programs on cgroups. */
  async close(): Promise<void> {
    await this.#daemon?.stop()
    this.closeNow()
  }

  closeNow(): void {
    process.off('exit', this.#onExit)
    this.#daemon?.kill('SIGKILL')
    rmSync(this.pinPath, { recursive: true, force: true })
    rmSync(pinLockFile(this.pinPath), { force: true })
    if (existsSync(this.configFile)) rmSync(pinNoteFile(this.configFile), { force: true })
    rmSync(this.folder, { recursive: true, force: true })
  }

  get #net(): readonly string[] {
    return [`--net=/run/netns/${this.#lab.node.namespace}`, '--']
  }
}

/** Little-endian octets as bpftool prints them: `["0x2a","0x00",...]`. */
function numberOf(octets: readonly string[]): number {
  return octets.reduceRight((sum, octet) => sum * 256 + Number(octet), 0)
}
