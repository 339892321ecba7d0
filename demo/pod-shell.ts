// The pod as the demo uses it: real dig and curl in its namespace, with a resolv.conf of its own that names namegate,
// so that the tools find the resolver the way any workload does.

import type { Output } from '../test/support/labs/lab-process.ts'
import type { Pod } from '../test/support/labs/lab-pod.ts'
import type { Workspace } from './workspace.ts'

/** How long a blocked curl is given, in seconds; below the first retransmission of a SYN (1 s). */
const PATIENCE = 0.7

export class PodShell {
  readonly pod: Pod
  readonly #resolvConf: string

  constructor(pod: Pod, workspace: Workspace) {
    this.pod = pod
    this.#resolvConf = workspace.path('resolv.conf')
    workspace.write('resolv.conf', `nameserver ${pod.gateway4}\noptions timeout:1 attempts:1\n`)
  }

  async dig(...args: readonly string[]): Promise<string> {
    const { stdout } = await this.#run('dig', '+tries=1', '+time=1', ...args)
    return stdout
  }

  async curl(url: string, ...args: readonly string[]): Promise<Output> {
    return await this.#run('curl', '-sS4', '-m', String(PATIENCE), ...args, url)
  }

  /** A connection that stays open and gets a line every 100 ms. */
  stream(url: string): ReturnType<Pod['host']['start']> {
    return this.pod.host.start(...this.#inside('curl', '-sSN4', url))
  }

  /** SYNs that had to be sent again since the pod was made. */
  async lostFirstPackets(): Promise<number> {
    const { stdout } = await this.#run('nstat', '-asz', 'TcpExtTCPSynRetrans')
    return Number(/TCPSynRetrans\s+(\d+)/.exec(stdout)?.[1] ?? Number.NaN)
  }

  async #run(command: string, ...args: readonly string[]): Promise<Output> {
    return await this.pod.host.run(...this.#inside(command, ...args))
  }

  /** In a mount namespace where /etc/resolv.conf is the pod's. */
  #inside(command: string, ...args: readonly string[]): [command: string, args: string[]] {
    const script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
    return ['unshare', ['--mount', 'sh', '-c', script, this.#resolvConf, command, ...args]]
  }
}
