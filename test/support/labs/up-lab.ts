// `namegate up` in a lab: a host with workloads and an internet. Each run has its own mounts, so that its resolv.conf is not that of this
// machine. The runs of one lab share /run/namegate and the bpffs, as the runs on one host do.

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PROGRAM } from '../nodes/daemon-process.ts'
import type { Host } from './lab.ts'
import { podLab, type Pod, type PodLab } from './lab-pod.ts'
import type { LabProcess, Output } from './lab-process.ts'

export const ALLOWED = 'www.shop.test'
export const OTHER = 'other.test'
const ZONES = { names: { [ALLOWED]: ['198.18.40.1'], [OTHER]: ['198.18.40.2'] } }
const LIMIT_MS = 90_000
/** Arguments: the resolv.conf, the folder that becomes /run/namegate, the bpffs, then the command. */
const OWN_MOUNTS =
  'mount --bind "$1" /etc/resolv.conf && mkdir -p /run/namegate && mount --bind "$2" /run/namegate && mount --bind "$3" /sys/fs/bpf && shift 3 && exec "$@"'

export class UpLab {
  readonly hosts: PodLab
  readonly folder = mkdtempSync(join(tmpdir(), 'ng-up-'))
  /** The folder that the runs see as /run/namegate. */
  readonly shared = join(this.folder, 'run')
  /** The bpffs that the runs see at /sys/fs/bpf. A run that mounted its own would leave no pins to the next one. */
  readonly #bpffs = join(this.folder, 'bpf')
  readonly #runs: UpRun[] = []

  constructor(pods: number) {
    this.hosts = podLab({ pods })
    for (const folder of [this.shared, this.#bpffs]) mkdirSync(folder)
    execFileSync('mount', ['-t', 'bpf', 'bpf', this.#bpffs])
  }

  /** The folders of pins that the runs made. The kernel has files of its own in a bpffs, such as `maps.debug`. */
  get pins(): readonly string[] {
    return readdirSync(this.#bpffs).filter((name) => !name.endsWith('.debug'))
  }

  get node(): Host {
    return this.hosts.node
  }

  pod(i: number): Pod {
    const pod = this.hosts.pods[i]
    if (pod === undefined) throw new Error(`the lab has no pod ${i}`)
    return pod
  }

  async serve(): Promise<void> {
    await this.hosts.startNameServer(ZONES)
    await this.hosts.startWebServer([80])
  }

  /** Starts `namegate up ARGS` on the node. `resolver`: the server that resolv.conf names. */
  up(resolver: string, ...args: readonly string[]): UpRun {
    return this.#run(resolver, ['up', ...args])
  }

  /** Starts `namegate run --config FILE` on the node, without `up`. */
  daemon(resolver: string, config: string): UpRun {
    return this.#run(resolver, ['run', '--config', config])
  }

  /** Runs `namegate up ARGS` until it ends by itself. */
  async refused(resolver: string, ...args: readonly string[]): Promise<Output> {
    const output = await this.#start(resolver, ['up', ...args]).ended(LIMIT_MS)
    if (output === undefined) throw new Error(`namegate up ${args.join(' ')} did not end`)
    return output
  }

  /** The status code of http://NAME/, or 000 without an answer within `seconds`. */
  async fetch(host: Host, name: string, seconds = 10): Promise<string> {
    const args = [
      '-s',
      '-m',
      String(seconds),
      '-o',
      '/dev/null',
      '-w',
      '%{http_code}',
      `http://${name}/`,
    ]
    return (await host.run('unshare', this.#words('192.0.2.53', 'curl', ...args))).stdout
  }

  async close(): Promise<void> {
    await Promise.all(this.#runs.map(async (run) => await run.end()))
    await this.hosts.close()
    execFileSync('umount', [this.#bpffs])
    rmSync(this.folder, { recursive: true, force: true })
  }

  #run(resolver: string, args: readonly string[]): UpRun {
    const run = new UpRun(this.node, this.#start(resolver, args))
    this.#runs.push(run)
    return run
  }

  #start(resolver: string, args: readonly string[]): LabProcess {
    return this.node.start('unshare', this.#words(resolver, PROGRAM, ...args), {
      env: { NO_COLOR: '1' },
      cwd: this.folder,
    })
  }

  /** The arguments of unshare(1) for a command. */
  #words(resolver: string, ...command: readonly string[]): readonly string[] {
    const file = join(this.folder, `resolv-${resolver}`)
    writeFileSync(file, `nameserver ${resolver}\n`)
    return ['--mount', 'sh', '-c', OWN_MOUNTS, 'sh', file, this.shared, this.#bpffs, ...command]
  }
}

/** A running `namegate up`, or a daemon that runs without it. */
export class UpRun {
  readonly process: LabProcess
  readonly #node: Host

  constructor(node: Host, process: LabProcess) {
    this.#node = node
    this.process = process
  }

  /** Waits until the workload is protected. Returns the line that reports it. */
  async protects(): Promise<string> {
    const [line] = await this.process.untilOutput(/^namegate: .* after the start.*$/m, LIMIT_MS)
    return line
  }

  /** Runs a command of namegate in `cwd`, as from a second terminal. */
  async command(cwd: string, ...args: readonly string[]): Promise<Output> {
    const mounts = `--mount=/proc/${this.process.pid}/ns/mnt`
    const inside = ['sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', cwd, PROGRAM, ...args]
    return await this.#node.run('nsenter', [mounts, ...inside], {
      env: { NO_COLOR: '1' },
      limitMs: LIMIT_MS,
    })
  }

  /** Runs any command with the mounts of this run. */
  async run(...words: readonly string[]): Promise<Output> {
    const mounts = `--mount=/proc/${this.process.pid}/ns/mnt`
    return await this.#node.run('nsenter', [mounts, ...words], { limitMs: LIMIT_MS })
  }

  /** Ends it, by default as Ctrl-C does. */
  async end(signal: NodeJS.Signals = 'SIGINT'): Promise<Output | undefined> {
    this.process.kill(signal)
    const output = await this.process.ended(LIMIT_MS)
    this.process.kill('SIGKILL')
    return output
  }
}
