// Traffic for labs, each kind as a process, and its representation in the test that started it.
//   node --import tsx traffic.ts echo PORT...                    sends back all data, on any address
//   node --import tsx traffic.ts talk ADDRESS PORT               one connection; a line out, its echo in, every 20 ms
//   node --import tsx traffic.ts echo-udp ADDRESS PORT           sends back datagrams to one address
//   node --import tsx traffic.ts flow ADDRESS PORT               one UDP socket; a datagram out, its echo in, every 200 ms
//   node --import tsx traffic.ts probe EVERY_MS ADDRESS PORT...  a new connection to each port every so often
// A probe counts as lost if it is not connected in LIMIT_MS, which is less than TCP takes to send a lost SYN again.

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Host } from '../labs/lab.ts'
import type { LabProcess } from '../labs/lab-process.ts'
import { programArgs } from '../labs/program.ts'

const TALK_MS = 20
const FLOW_MS = 200
const LIMIT_MS = 500

/** One attempt of a probe; times in Unix milliseconds with fractions. */
export interface Attempt {
  readonly port: number
  readonly connected: boolean
  readonly began: number
  readonly ended: number
}

export async function startEcho(host: Host, ...ports: readonly number[]): Promise<LabProcess> {
  return await start(host, 'echo', ...ports.map(String))
}

/** Starts a sender that returns datagrams at an address of the host. */
export async function startEchoUdp(host: Host, address: string, port: number): Promise<LabProcess> {
  return await start(host, 'echo-udp', address, String(port))
}

/** An open connection that has had its first line echoed. */
export class Talk {
  readonly #process: LabProcess

  static async open(host: Host, address: string, port: number): Promise<Talk> {
    const talk = new Talk(await start(host, 'talk', address, String(port)))
    await talk.moves(1)
    return talk
  }

  /** The same over UDP, like QUIC. The flow keeps its port. */
  static async openFlow(host: Host, address: string, port: number): Promise<Talk> {
    const talk = new Talk(await start(host, 'flow', address, String(port)))
    await talk.moves(1)
    return talk
  }

  constructor(process: LabProcess) {
    this.#process = process
  }

  /** The number of echoed lines. */
  get echoed(): number {
    return this.#process.stdout.split('\n').filter((line) => line.startsWith('echo')).length
  }

  /** Waits for `lines` more echoed lines. Throws after `limitMs` or if the connection was closed. */
  async moves(lines = 10, limitMs = 15_000): Promise<void> {
    const goal = this.echoed + lines
    await this.#process.until(
      () => (this.echoed >= goal ? true : undefined),
      `expected ${lines} more lines`,
      limitMs,
    )
  }

  async stop(): Promise<void> {
    await this.#process.stop()
  }
}

export class Probe {
  readonly #process: LabProcess

  static async begin(
    host: Host,
    everyMs: number,
    address: string,
    ...ports: readonly number[]
  ): Promise<Probe> {
    const args = [String(everyMs), address, ...ports.map(String)]
    return new Probe(await start(host, 'probe', ...args))
  }

  constructor(process: LabProcess) {
    this.#process = process
  }

  /** Attempts that have ended so far, in the order of their ends. */
  attempts(port: number): Attempt[] {
    const lines = this.#process.stdout.split('\n').map((line) => line.split(' '))
    return lines
      .filter(([word, at]) => (word === 'ok' || word === 'no') && Number(at) === port)
      .map(([word, , began, ended]) => {
        return { port, connected: word === 'ok', began: Number(began), ended: Number(ended) }
      })
  }

  /** Waits for an attempt that began at or after `since` and has connected. Returns it. */
  async untilConnected(port: number, since: number, limitMs = 15_000): Promise<Attempt> {
    return await this.#process.until(
      () => this.attempts(port).find(({ connected, began }) => connected && began >= since),
      `expected a connection to port ${port}`,
      limitMs,
    )
  }

  /** Waits for an attempt that began at or after `since` and has ended in any way. Returns it. */
  async untilTried(port: number, since: number, limitMs = 15_000): Promise<Attempt> {
    return await this.#process.until(
      () => this.attempts(port).find(({ began }) => began >= since),
      `expected an attempt at port ${port}`,
      limitMs,
    )
  }

  /** Makes no new attempts. Returns when those under way have ended. */
  async stop(): Promise<void> {
    await this.#process.stop()
  }
}

/** The present time in the unit of `Attempt`. */
export function unixNow(): number {
  return performance.timeOrigin + performance.now()
}

async function start(host: Host, ...args: readonly string[]): Promise<LabProcess> {
  const started = host.start(process.execPath, programArgs(import.meta.filename, ...args))
  await started.untilOutput(/^ready$/m)
  return started
}

async function echo(ports: readonly number[]): Promise<void> {
  for (const port of ports) {
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy())
      socket.pipe(socket)
    })
    server.listen(port, '::')
    await once(server, 'listening')
  }
  console.log('ready')
}

function talk(address: string, port: number): void {
  const socket = connect({ host: address, port, noDelay: true })
  socket.setEncoding('utf8')
  socket.on('connect', () => {
    console.log('ready')
    setInterval(() => socket.write('line\n'), TALK_MS)
  })
  socket.on('data', (text: string) => {
    for (let i = 0; i < text.split('\n').length - 1; i++) console.log('echo')
  })
  socket.on('close', () => process.exit(1))
}

async function echoUdp(address: string, port: number): Promise<void> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
  socket.on('message', (message, from) => socket.send(message, from.port, from.address))
  socket.bind(port, address)
  await once(socket, 'listening')
  console.log('ready')
}

function flow(address: string, port: number): void {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
  socket.on('message', () => console.log('echo'))
  socket.on('connect', () => {
    console.log('ready')
    setInterval(() => socket.send('line\n'), FLOW_MS)
  })
  socket.connect(port, address)
}

function probe(everyMs: number, address: string, ports: readonly number[]): void {
  const timer = setInterval(() => ports.forEach((port) => attempt(address, port)), everyMs)
  process.on('SIGTERM', () => clearInterval(timer))
  console.log('ready')
}

function attempt(address: string, port: number): void {
  const began = unixNow()
  const socket = connect({ host: address, port })
  let ended = false
  const end = (word: string): void => {
    if (ended) return
    ended = true
    clearTimeout(limit)
    socket.destroy()
    console.log(`${word} ${port} ${began.toFixed(2)} ${unixNow().toFixed(2)}`)
  }
  // An event that the kernel has already reported takes precedence over the limit, even if this process is late.
  const limit = setTimeout(() => setImmediate(() => end('no')), LIMIT_MS)
  socket.on('error', () => undefined)
  socket.on('connect', () => end('ok'))
}

if (process.argv[1] === import.meta.filename) {
  const [what, ...rest] = process.argv.slice(2)
  const [first = '', second = ''] = rest
  if (what === 'echo') void echo(rest.map(Number))
  if (what === 'talk') talk(first, Number(second))
  if (what === 'echo-udp') void echoUdp(first, Number(second))
  if (what === 'flow') flow(first, Number(second))
  if (what === 'probe') probe(Number(first), second, rest.slice(2).map(Number))
}
