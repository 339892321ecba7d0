// namegate as the demo runs it: the daemon as a process, its configuration, and the command line against it.

import { fileURLToPath } from 'node:url'
import { LabProcess, run, type Output } from '../test/support/labs/lab-process.ts'
import type { Host } from '../test/support/labs/lab.ts'
import type { Workspace } from './workspace.ts'

const COMMAND = fileURLToPath(new URL('../bin/namegate', import.meta.url))

export interface Setup {
  readonly listeners: readonly string[]
  readonly port: number
  readonly upstream: string
  /** The lines under `datapath:`. */
  readonly datapath: string
  readonly endpoint: string
}

/** Where the commands run: in the node of a lab, or on this machine. */
export class Namegate {
  readonly #workspace: Workspace
  readonly #node: Host | undefined

  constructor(workspace: Workspace, setup: Setup, node?: Host) {
    this.#workspace = workspace
    this.#node = node
    workspace.copy(new URL('policy.yaml', import.meta.url), 'policy.yaml')
    workspace.write('endpoints.yaml', `endpoints:\n  - ${setup.endpoint}\n`)
    workspace.write('namegate.yaml', configFor(setup))
  }

  /** Started and ready: listeners bound, the endpoint enforced or at least known. */
  async start(): Promise<LabProcess> {
    const args = ['run', '--config', 'namegate.yaml']
    const options = { cwd: this.#workspace.folder, env: { NO_COLOR: '1' } }
    const daemon =
      this.#node === undefined
        ? new LabProcess(COMMAND, args, options)
        : this.#node.start(COMMAND, args, options)
    process.on('exit', () => daemon.kill('SIGKILL'))
    const deadline = performance.now() + 10_000
    for (;;) {
      const { code } = await this.run('status', '--ready')
      if (code === 0) return daemon
      if (!daemon.running || performance.now() > deadline) {
        throw new Error(`namegate did not become ready\n${daemon.stdout}${daemon.stderr}`)
      }
    }
  }

  /** `namegate ARGS` about the demo's daemon or, for what works without one, its configuration. */
  async run(...args: readonly string[]): Promise<Output> {
    const options = { cwd: this.#workspace.folder, env: { NO_COLOR: '1' } }
    const where =
      args[0] === 'datapath' ? ['--config', 'namegate.yaml'] : ['--socket', 'admin.sock']
    const all = [...args, ...where]
    return this.#node === undefined
      ? await run(COMMAND, all, options)
      : await this.#node.run(COMMAND, all, options)
  }

  /** A reading command's JSON, which is always an array of objects here. */
  async list(what: string): Promise<Record<string, unknown>[]> {
    const { code, stdout, stderr } = await this.run('get', what, '-o', 'json')
    if (code !== 0) throw new Error(`namegate get ${what} failed: ${stderr}`)
    return JSON.parse(stdout) as Record<string, unknown>[]
  }
}

function configFor({ listeners, port, upstream, datapath }: Setup): string {
  const listenerLines = listeners.map(
    (address) => `  - { address: '${address}', port: ${port}, mode: explicit }`,
  )
  return [
    'listeners:',
    ...listenerLines,
    `upstreams: { servers: ['${upstream}'] }`,
    'policies: { paths: [policy.yaml] }',
    'endpoints: { files: [endpoints.yaml] }',
    `datapath: ${datapath}`,
    'state: { directory: state }',
    'admin: { socket: admin.sock }',
    'metrics: { port: 0 }',
    'log: { level: warn, format: pretty }',
    '',
  ].join('\n')
}

/** One row of `get ipcache`, as far as the demo reads it. */
export interface CachedPrefix {
  readonly prefix: string
  readonly identity: number
  readonly labels: readonly string[]
}

export async function prefixesOf(namegate: Namegate): Promise<CachedPrefix[]> {
  return (await namegate.list('ipcache')).map(({ prefix, identity, labels }) => ({
    prefix: String(prefix),
    identity: Number(identity),
    labels: Array.isArray(labels) ? labels.map(String) : [],
  }))
}
