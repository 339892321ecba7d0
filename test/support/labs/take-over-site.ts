// A place for take-overs in tests: a folder, daemons in it, true and false successors, and clients.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { TcpClient } from '../peers/client.ts'
import { endpointsText, policyText } from '../nodes/daemon-files.ts'
import { DaemonFolder, PROGRAM, RunningDaemon } from '../nodes/daemon-process.ts'
import type { DnsClient } from '../peers/dns-client.ts'
import { LabProcess } from './lab-process.ts'
import { answering, type FakeUpstream } from '../peers/upstream.ts'
import { programArgs } from './program.ts'

/** The command of docs/operations.md, with the configuration of the working directory. */
export const TAKE_OVER =
  /^namegate (run .*--take-over.*)$/m
    .exec(readFileSync('docs/operations.md', 'utf8'))?.[1]
    ?.replace('/etc/namegate/', '')
    ?.split(' ') ?? []

/** A folder, its daemons, and their clients. `close` ends all of it. */
export class TakeOverSite {
  readonly config: Readonly<Record<string, string>>
  readonly folder: DaemonFolder
  readonly #upstream: FakeUpstream
  readonly #ends: (() => Promise<void> | void)[] = []
  first: RunningDaemon | undefined

  constructor(upstream: FakeUpstream) {
    this.#upstream = upstream
    this.config = {
      upstreams: `{ servers: ["127.0.0.1:${upstream.port}"], timeout: 20s }`,
      // On a busy machine a successor can be slow, and half a message waits for it.
      limits: '{ tcp-message-timeout: 30s }',
    }
    const files = {
      'policy.yaml': policyText('web', ['*.example']),
      'endpoints.yaml': endpointsText({ one: '127.0.0.1' }),
    }
    this.folder = new DaemonFolder({ files, config: this.config })
  }

  async serve(): Promise<RunningDaemon> {
    const daemon = await this.folder.serve()
    this.first = daemon
    this.later(async () => await daemon.process.stop())
    return daemon
  }

  successor(env: Readonly<Record<string, string>> = {}): RunningDaemon {
    const child = new LabProcess(PROGRAM, TAKE_OVER, { cwd: this.folder.path, env })
    this.later(async () => await child.stop())
    return new RunningDaemon(child, this.folder.in('admin.sock'))
  }

  falseSuccessor(...then: readonly string[]): LabProcess {
    const script = fileURLToPath(new URL('../peers/false-successor.ts', import.meta.url))
    const child = new LabProcess(process.execPath, programArgs(script, this.folder.path, ...then))
    this.later(async () => await child.stop())
    return child
  }

  /** Writes the same configuration with other policies. */
  configure(policies: string): void {
    this.folder.configure({ ...this.config, policies })
  }

  async client(daemon: RunningDaemon): Promise<DnsClient> {
    const client = await daemon.client()
    this.later(() => client.close())
    return client
  }

  async tcp(daemon: RunningDaemon): Promise<TcpClient> {
    const client = await TcpClient.open(daemon.port)
    this.later(() => client.close())
    return client
  }

  later(end: () => Promise<void> | void): void {
    this.#ends.push(end)
  }

  async close(): Promise<void> {
    for (const end of this.#ends.reverse()) await end()
    this.folder.remove()
    this.#upstream.behaviour = answering
  }
}

export async function withTakeOverSite(
  upstream: FakeUpstream,
  run: (site: TakeOverSite) => Promise<void>,
): Promise<void> {
  const site = new TakeOverSite(upstream)
  try {
    await run(site)
  } finally {
    await site.close()
  }
}
