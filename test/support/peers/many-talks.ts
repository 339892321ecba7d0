// Many TCP connections of one client: each sends a line every EVERY_MS, and `echo` of traffic.ts sends it back. A process, and its
// representation in the test that started it.
//   node --import tsx many-talks.ts ADDRESS PORT COUNT

import { connect, type Socket } from 'node:net'
import type { Host } from '../labs/lab.ts'
import type { LabProcess } from '../labs/lab-process.ts'
import { programArgs } from '../labs/program.ts'

const EVERY_MS = 500
const TELL_MS = 100

export class ManyTalks {
  readonly #process: LabProcess

  /** Opens all connections, and waits until each has had its first line echoed. */
  static async open(host: Host, address: string, port: number, count: number): Promise<ManyTalks> {
    const args = programArgs(import.meta.filename, address, String(port), String(count))
    const talks = new ManyTalks(host.start(process.execPath, args))
    const all = () => (talks.open === count && talks.least > 0 ? true : undefined)
    await talks.#process.until(all, `expected ${count} connections`, 15_000)
    return talks
  }

  constructor(process: LabProcess) {
    this.#process = process
  }

  /** The number of open connections. */
  get open(): number {
    return this.#last()[0]
  }

  /** The number of echoed lines on the connection with the fewest. */
  get least(): number {
    return this.#last()[1]
  }

  /** The number of echoed lines on all connections. */
  get all(): number {
    return this.#last()[2]
  }

  /** Waits until each connection has `lines` more echoed lines. */
  async moves(lines: number, limitMs = 10_000): Promise<void> {
    const goal = this.least + lines
    const what = `expected ${lines} more lines on each`
    await this.#process.until(() => (this.least >= goal ? true : undefined), what, limitMs)
  }

  async stop(): Promise<void> {
    await this.#process.stop()
  }

  #last(): readonly [open: number, least: number, all: number] {
    const line = this.#process.stdout.trimEnd().split('\n').at(-1) ?? ''
    const [open = 0, least = 0, all = 0] = line.split(' ').map(Number)
    return [open, least, all]
  }
}

function talk(address: string, port: number, count: number): void {
  const sockets = new Map<Socket, number>()
  for (let i = 0; i < count; i++) {
    const socket = connect({ host: address, port, noDelay: true })
    socket.on('connect', () => {
      sockets.set(socket, 0)
      setInterval(() => socket.write('line\n'), EVERY_MS)
      socket.write('line\n')
    })
    socket.on('data', (chunk) => sockets.set(socket, (sockets.get(socket) ?? 0) + chunk.length / 5))
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
  }
  setInterval(() => {
    const echoed = [...sockets.values()].map(Math.floor)
    const sum = echoed.reduce((total, each) => total + each, 0)
    console.log(`${sockets.size} ${echoed.length === 0 ? 0 : Math.min(...echoed)} ${sum}`)
  }, TELL_MS)
}

if (process.argv[1] === import.meta.filename) {
  const [address = '', port = '', count = ''] = process.argv.slice(2)
  talk(address, Number(port), Number(count))
}
