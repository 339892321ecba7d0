// One TCP connection that sends nothing until a signal: then a line, which is echoed.
//   node --import tsx idle.ts ADDRESS PORT       SIGUSR2: sends a line; SIGTERM: closes

import { connect } from 'node:net'
import type { Host } from '../labs/lab.ts'
import type { LabProcess } from '../labs/lab-process.ts'
import { programArgs } from '../labs/program.ts'

export class IdleConnection {
  readonly #process: LabProcess

  static async open(host: Host, address: string, port: number): Promise<IdleConnection> {
    const args = programArgs(import.meta.filename, address, String(port))
    const process_ = host.start(process.execPath, args)
    await process_.untilOutput(/^ready$/m)
    return new IdleConnection(process_)
  }

  private constructor(process_: LabProcess) {
    this.#process = process_
  }

  get #echoed(): number {
    return this.#process.stdout.split('\n').filter((line) => line === 'echo').length
  }

  /** Sends a line and waits for its echo. Throws after `limitMs`. */
  async moves(limitMs = 10_000): Promise<void> {
    const goal = this.#echoed + 1
    this.#process.kill('SIGUSR2')
    const check = (): true | undefined => (this.#echoed >= goal ? true : undefined)
    await this.#process.until(check, 'expected the echo of a line', limitMs)
  }

  /** Closes in order. */
  async close(): Promise<void> {
    this.#process.kill('SIGTERM')
    await this.#process.ended(5000)
  }
}

function run([address = '', port]: readonly string[]): void {
  const socket = connect({ host: address, port: Number(port), noDelay: true })
  socket.setEncoding('utf8')
  socket.on('connect', () => console.log('ready'))
  socket.on('data', (text: string) => {
    for (let i = 0; i < text.split('\n').length - 1; i++) console.log('echo')
  })
  socket.on('close', () => process.exit(0))
  process.on('SIGUSR2', () => socket.write('line\n'))
  process.on('SIGTERM', () => socket.end())
}

if (process.argv[1] === import.meta.filename) run(process.argv.slice(2))
