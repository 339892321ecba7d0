// Two processes that send each other numbered messages at a steady pace, over UDP or one TCP connection, and print when each message
// arrived. They show what is lost, and from when on. Each sends without regard to what it receives.
//   node --import tsx sequence.ts peer udp|tcp ADDRESS PORT EVERY_MS
//   node --import tsx sequence.ts begin udp|tcp ADDRESS PORT EVERY_MS
// SIGTERM: stops sending, but continues to listen until SIGKILL.

import { createSocket } from 'node:dgram'
import { connect, createServer, type Socket } from 'node:net'
import type { Host } from '../labs/lab.ts'
import type { LabProcess } from '../labs/lab-process.ts'
import { unixNow } from './traffic.ts'
import { programArgs } from '../labs/program.ts'

export type SequenceProtocol = 'udp' | 'tcp'

/** One message that arrived. `time` is in Unix milliseconds with fractions. */
export interface Arrival {
  readonly number: number
  readonly time: number
}

/** Both ends of one flow. `began` is the end that sent first. */
export class Sequence {
  readonly title: string
  readonly #began: LabProcess
  readonly #peer: LabProcess

  static async open(
    hosts: { readonly from: Host; readonly to: Host },
    protocol: SequenceProtocol,
    address: string,
    port: number,
    everyMs: number,
  ): Promise<Sequence> {
    const args = [protocol, address, String(port), String(everyMs)]
    const peer = await startSide(hosts.to, 'peer', args)
    const began = await startSide(hosts.from, 'begin', args)
    const sequence = new Sequence(`${protocol} to ${address}`, began, peer)
    await peer.untilOutput(/^got /m)
    await began.untilOutput(/^got /m)
    return sequence
  }

  private constructor(title: string, began: LabProcess, peer: LabProcess) {
    this.title = title
    this.#began = began
    this.#peer = peer
  }

  /** Messages that arrived at the peer. */
  get atPeer(): readonly Arrival[] {
    return arrivals(this.#peer)
  }

  /** Messages of the peer that arrived at the end that began. */
  get back(): readonly Arrival[] {
    return arrivals(this.#began)
  }

  /** Number of messages that the end that began has sent; final after `quiet`. */
  get sent(): number {
    return Number(/^sent (\d+)$/m.exec(this.#began.stdout)?.[1] ?? NaN)
  }

  /** Number of messages that the peer has sent; final after `quiet`. */
  get sentBack(): number {
    return Number(/^sent (\d+)$/m.exec(this.#peer.stdout)?.[1] ?? NaN)
  }

  /** Waits for a message that arrived at the peer at or after `since`. */
  async untilArrival(since: number, limitMs: number): Promise<Arrival> {
    return await this.#peer.until(
      () => this.atPeer.find(({ time }) => time >= since),
      'expected a message',
      limitMs,
    )
  }

  /** Stops both senders. Messages on their way have arrived on return. */
  async quiet(): Promise<void> {
    for (const side of [this.#began, this.#peer]) {
      side.kill('SIGTERM')
      await side.untilOutput(/^sent \d+$/m)
    }
    await new Promise((done) => setTimeout(done, 200))
  }
}

function arrivals({ stdout }: LabProcess): readonly Arrival[] {
  // The last line can be incomplete.
  const lines = stdout.split('\n').slice(0, -1)
  return lines.flatMap((line) => {
    const [word, number, time] = line.split(' ')
    return word === 'got' ? [{ number: Number(number), time: Number(time) }] : []
  })
}

async function startSide(host: Host, side: string, args: readonly string[]): Promise<LabProcess> {
  const started = host.start(process.execPath, programArgs(import.meta.filename, side, ...args))
  await started.untilOutput(/^ready$/m)
  return started
}

/** Sends the numbers from 0 on, one every `everyMs`, until SIGTERM. */
function pace(everyMs: number, send: (text: string) => void): void {
  let next = 0
  const timer = setInterval(() => send(`${next++}\n`), everyMs)
  process.on('SIGTERM', () => {
    clearInterval(timer)
    console.log(`sent ${next}`)
  })
}

function printArrival(text: string): void {
  const time = unixNow().toFixed(2)
  process.stdout.write(
    text
      .trimEnd()
      .split('\n')
      .map((number) => `got ${number} ${time}\n`)
      .join(''),
  )
}

/** A socket that continues while the network is away. */
function udpSocket(address: string): ReturnType<typeof createSocket> {
  const type = address.includes(':') ? 'udp6' : 'udp4'
  return createSocket({ type, recvBufferSize: 1 << 20 }).on('error', () => undefined)
}

function udpPeer(address: string, port: number, everyMs: number): void {
  const socket = udpSocket(address)
  let heard = false
  socket.on('message', (octets, { address: from, port: fromPort }) => {
    if (!heard) pace(everyMs, (text) => socket.send(text, fromPort, from))
    heard = true
    printArrival(octets.toString())
  })
  socket.bind(port, address, () => console.log('ready'))
}

function udpBegin(address: string, port: number, everyMs: number): void {
  const socket = udpSocket(address)
  socket.on('message', (octets) => printArrival(octets.toString()))
  socket.bind(() => {
    console.log('ready')
    pace(everyMs, (text) => socket.send(text, port, address))
  })
}

function tcpSide(socket: Socket, everyMs: number): void {
  let pending = ''
  socket.setNoDelay(true).setEncoding('utf8')
  socket.on('error', () => socket.destroy())
  socket.on('data', (text: string) => {
    const end = (pending + text).lastIndexOf('\n') + 1
    if (end > 0) printArrival((pending + text).slice(0, end))
    pending = (pending + text).slice(end)
  })
  pace(everyMs, (text) => socket.write(text))
}

function main([side, protocol, address = '', port, every]: readonly string[]): void {
  const everyMs = Number(every)
  if (protocol === 'udp') {
    const run = side === 'peer' ? udpPeer : udpBegin
    run(address, Number(port), everyMs)
  } else if (side === 'peer') {
    const server = createServer((socket) => tcpSide(socket, everyMs))
    server.listen(Number(port), address, () => console.log('ready'))
  } else {
    const socket = connect({ host: address, port: Number(port) }, () => {
      console.log('ready')
      tcpSide(socket, everyMs)
    })
  }
}

if (process.argv[1] === import.meta.filename) main(process.argv.slice(2))
