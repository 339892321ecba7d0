// `namegate run` as a process, in a folder of its own, with an upstream that the test controls.

import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { http, type HttpAnswer } from './admin.ts'
import { objectIn } from './command.ts'
import { mkFolder } from './daemon-files.ts'
import { DnsClient } from '../peers/dns-client.ts'
import { LabProcess, run, type Output } from '../labs/lab-process.ts'

export const PROGRAM = resolve('bin/namegate')
/** The arguments of setpriv that run a program without root. */
export const NOBODY = ['--reuid', '65534', '--regid', '65534', '--clear-groups']

export interface FolderOptions {
  /** Path inside the folder -> text. */
  readonly files?: Readonly<Record<string, string>>
  /** Whole lines of the config. Other lines are those of `DEFAULTS`. */
  readonly config?: Readonly<Record<string, string>>
}

const DEFAULTS: Readonly<Record<string, string>> = {
  listeners: '[{ address: 127.0.0.1, port: 0, mode: explicit }]',
  upstreams: '{ servers: ["192.0.2.53:53"] }',
  policies: '{ paths: [policy.yaml] }',
  endpoints: '{ files: [endpoints.yaml] }',
  metrics: '{ address: 127.0.0.1, port: 0 }',
  state: '{ directory: state }',
  admin: '{ socket: admin.sock }',
}

/** A folder with a config. `namegate` runs in it. */
export class DaemonFolder {
  readonly path = mkFolder()

  constructor(options: FolderOptions) {
    chmodSync(this.path, 0o755)
    for (const [name, text] of Object.entries(options.files ?? {})) this.write(name, text)
    this.configure(options.config ?? {})
  }

  configure(config: Readonly<Record<string, string>>): void {
    const lines = Object.entries({ ...DEFAULTS, ...config })
    const text = lines.map(([key, value]) => `${key}: ${value}\n`).join('')
    this.write('namegate.yaml', text)
  }

  write(name: string, text: string): void {
    const path = this.in(name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }

  in(name: string): string {
    return join(this.path, name)
  }

  /** Runs a command of namegate to its end. */
  async namegate(...args: readonly string[]): Promise<Output> {
    const config = ['--config', 'namegate.yaml']
    return await run(PROGRAM, [...args, ...config], { cwd: this.path, limitMs: 30_000 })
  }

  /** Runs any command to its end. */
  async run(command: string, ...args: readonly string[]): Promise<Output> {
    return await run(command, args, { cwd: this.path, limitMs: 30_000 })
  }

  /** Starts the daemon, and waits until it serves. `env`: more environment. */
  async serve(env: Readonly<Record<string, string>> = {}): Promise<RunningDaemon> {
    const daemon = this.spawn(env)
    await daemon.process.untilOutput(/namegate serves/, 60_000)
    return daemon
  }

  spawn(env: Readonly<Record<string, string>> = {}): RunningDaemon {
    const args = ['run', '--config', 'namegate.yaml']
    const child = new LabProcess(PROGRAM, args, { cwd: this.path, env })
    return new RunningDaemon(child, this.in('admin.sock'))
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

export class RunningDaemon {
  readonly process: LabProcess
  readonly #socket: string

  constructor(child: LabProcess, socket: string) {
    this.process = child
    this.#socket = socket
  }

  /** The port of the first listener. */
  get port(): number {
    const found = /addresses: ?\["[^"]*:(\d+)"|"addresses":\["[^"]*:(\d+)"/.exec(
      this.process.stderr,
    )
    return Number(found?.[1] ?? found?.[2])
  }

  async client(address?: string): Promise<DnsClient> {
    return await DnsClient.open(this.port, address)
  }

  async get(path: string): Promise<HttpAnswer> {
    return await http({ socketPath: this.#socket }, path)
  }

  async post(path: string, body: unknown): Promise<HttpAnswer> {
    const options = { method: 'POST', body: JSON.stringify(body) }
    return await http({ socketPath: this.#socket }, path, options)
  }

  async status(): Promise<Readonly<Record<string, unknown>>> {
    return objectIn((await this.get('/v1/status')).text)
  }
}

/** The reason why a test that needs root is skipped, or false. */
export const NEEDS_ROOT = process.getuid?.() === 0 ? false : 'needs root'
