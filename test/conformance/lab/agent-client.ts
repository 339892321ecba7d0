// The typed face of an agent (agent.ts): sockets in another network namespace as objects of this process.

import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Host } from '../../support/labs/lab.ts'
import type { AgentCommand, AgentEvent } from './agent.ts'
import { programArgs } from '../../support/labs/program.ts'

const AGENT = fileURLToPath(new URL('agent.ts', import.meta.url))

type Listener = (event: AgentEvent) => void

export class Agent {
  readonly #child: ChildProcess
  readonly #listeners = new Map<number, Listener>()
  #last = 0

  private constructor(host: Host) {
    const net = `--net=/run/netns/${host.namespace}`
    const args = [net, '--', process.execPath, ...programArgs(AGENT)]
    this.#child = spawn('nsenter', args, { stdio: ['pipe', 'pipe', 'inherit'] })
    const { stdout } = this.#child
    if (stdout === null) throw new Error('the agent has no stdout')
    createInterface({ input: stdout }).on('line', (line) => {
      const event = JSON.parse(line) as AgentEvent
      this.#listeners.get(event.n)?.(event)
    })
  }

  static async start(host: Host): Promise<Agent> {
    const agent = new Agent(host)
    await new Promise<void>((resolve, reject) => {
      agent.#listeners.set(0, () => resolve())
      agent.#child.once('exit', (code) => reject(new Error(`an agent ended: ${String(code)}`)))
    })
    return agent
  }

  /** Makes a new socket. Resolves when the agent has it ready. */
  async open(make: (n: number) => AgentCommand, listener: Listener): Promise<number> {
    const n = ++this.#last
    await new Promise<void>((resolve, reject) => {
      this.#listeners.set(n, (event) => {
        if (event.on !== 'ready') return reject(new Error(`a socket: ${JSON.stringify(event)}`))
        this.#listeners.set(n, listener)
        resolve()
      })
      this.do(make(n))
    })
    return n
  }

  /** Follows an accepted connection. */
  follow(n: number, listener: Listener): void {
    this.#listeners.set(n, listener)
  }

  do(command: AgentCommand): void {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`)
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.kill('SIGKILL')
    await ended
  }
}
