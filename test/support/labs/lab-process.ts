// A process that a test or the demo started. Keeps its output, waits for it, and stops it (SIGTERM, then SIGKILL). lab.ts uses it inside
// network namespaces, others without one.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Output {
  /** A signal gives -1, and not 128 + its number. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface SpawnOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

export class LabProcess {
  /** The command, for messages. */
  readonly title: string
  stdout = ''
  stderr = ''
  readonly #child: ChildProcess
  /** Whether it has ended and all its output is here. */
  #isClosed = false

  constructor(command: string, args: readonly string[], options: SpawnOptions = {}) {
    this.title = [command, ...args].join(' ')
    this.#child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    })
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text))
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text))
    this.#child.once('close', () => (this.#isClosed = true))
    this.#child.on('error', (error) => (this.stderr += `${error.message}\n`))
  }

  /** 0 if it could not be started. */
  get pid(): number {
    return this.#child.pid ?? 0
  }

  get running(): boolean {
    return this.pid !== 0 && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Waits for the end. Undefined if it still runs after `limitMs`. */
  async ended(limitMs: number): Promise<Output | undefined> {
    if (this.pid !== 0 && !this.#isClosed) {
      const limit = AbortSignal.timeout(limitMs)
      await once(this.#child, 'close', { signal: limit }).catch(() => undefined)
    }
    if (this.running) return undefined
    return { code: this.#child.exitCode ?? -1, stdout: this.stdout, stderr: this.stderr }
  }

  /** Polls until `check` returns a value. Throws with the output if the process ends or time runs out. */
  async until<T>(check: () => T | undefined, what: string, limitMs = 60_000): Promise<T> {
    const deadline = performance.now() + limitMs
    for (;;) {
      const found = check()
      if (found !== undefined) return found
      if (!this.running || performance.now() > deadline) {
        const state = this.running ? `not seen in ${limitMs} ms` : 'it ended'
        throw new Error(`${this.title}: ${what}: ${state}\n${this.stdout}${this.stderr}`)
      }
      await sleep(10)
    }
  }

  /** Waits until stdout or stderr matches. */
  async untilOutput(pattern: RegExp, limitMs?: number): Promise<RegExpExecArray> {
    const check = () => pattern.exec(this.stdout) ?? pattern.exec(this.stderr) ?? undefined
    return await this.until(check, `expected ${String(pattern)}`, limitMs)
  }

  /** Waits until a process in this one's network namespace listens on the port (UDP: is bound to it). */
  async untilListening(protocol: 'tcp' | 'udp', port: number, limitMs?: number): Promise<void> {
    const check = () => (listensOn(this.pid, protocol, port) ? true : undefined)
    await this.until(check, `expected ${protocol} port ${port}`, limitMs)
  }

  /** Closes the reading end of a pipe, as a reader that ends does. */
  stopReading(stream: 'stdout' | 'stderr'): void {
    this.#child[stream]?.destroy()
  }

  kill(signal: NodeJS.Signals): void {
    if (this.running) this.#child.kill(signal)
  }

  /** Sends SIGTERM, and SIGKILL after two seconds. Returns after the end. */
  async stop(): Promise<void> {
    this.kill('SIGTERM')
    if ((await this.ended(2000)) !== undefined) return
    this.kill('SIGKILL')
    await this.ended(2000)
  }
}

/** Runs a command to its end. Kills it after `limitMs`, with code -1. */
export async function run(
  command: string,
  args: readonly string[],
  options: SpawnOptions & { readonly limitMs?: number } = {},
): Promise<Output> {
  const child = new LabProcess(command, args, options)
  const output = await child.ended(options.limitMs ?? 60_000)
  if (output !== undefined) return output
  child.kill('SIGKILL')
  await child.ended(2000)
  return { code: -1, stdout: child.stdout, stderr: `${child.stderr}ended after its time limit\n` }
}

/** Reads /proc/PID/net, which shows the sockets of that process's network namespace. */
function listensOn(pid: number, protocol: 'tcp' | 'udp', port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  const state = protocol === 'tcp' ? '0A' : '07'
  const line = new RegExp(`^\\s*\\d+: [0-9A-F]+:${hex} [0-9A-F]+:0000 ${state} `, 'm')
  return ['', '6'].some((family) => {
    try {
      return line.test(readFileSync(`/proc/${pid}/net/${protocol}${family}`, 'utf8'))
    } catch {
      return false
    }
  })
}
