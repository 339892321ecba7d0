// Runs inside a network namespace and holds sockets for the test outside. Commands are JSON lines on stdin, and events of the sockets are
// JSON lines on stdout. The agent decides nothing. Octets are hexadecimal. The test gives its sockets positive numbers, and the agent
// gives accepted connections negative ones.

import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

export type AgentCommand =
  | { readonly op: 'udp'; readonly n: number; readonly address: string; readonly port: number }
  | {
      readonly op: 'send'
      readonly n: number
      readonly to: string
      readonly port: number
      readonly hex: string
    }
  /** The same datagram with every id, `step` apart. The id `last` comes last. */
  | {
      readonly op: 'flood'
      readonly n: number
      readonly to: string
      readonly port: number
      readonly hex: string
      readonly step: number
      readonly last: number
    }
  | { readonly op: 'listen'; readonly n: number; readonly address: string; readonly port: number }
  | {
      readonly op: 'connect'
      readonly n: number
      readonly from: string
      readonly to: string
      readonly port: number
    }
  | { readonly op: 'write'; readonly n: number; readonly hex: string; readonly times: number }
  /** `quiet`: received octets are only counted. */
  | {
      readonly op: 'end' | 'destroy' | 'pause' | 'resume' | 'quiet' | 'count'
      readonly n: number
    }

export type AgentEvent =
  | { readonly on: 'ready'; readonly n: number; readonly port: number }
  | { readonly on: 'failed'; readonly n: number; readonly code: string }
  | {
      readonly on: 'datagram'
      readonly n: number
      readonly from: string
      readonly port: number
      readonly hex: string
    }
  | {
      readonly on: 'accepted'
      readonly n: number
      readonly connection: number
      readonly from: string
      readonly port: number
    }
  | { readonly on: 'data'; readonly n: number; readonly hex: string }
  | { readonly on: 'count'; readonly n: number; readonly octets: number }
  | { readonly on: 'ended' | 'closed' | 'flooded'; readonly n: number }

interface Connection {
  readonly socket: Socket
  quiet: boolean
  octets: number
}

const FLOOD_TURN = 256

const udp = new Map<number, UdpSocket>()
const servers = new Map<number, Server>()
const connections = new Map<number, Connection>()
let accepted = 0

function printEvent(event: AgentEvent): void {
  process.stdout.write(`${JSON.stringify(event)}\n`)
}

function codeOf(error: Error): string {
  return 'code' in error ? String(error.code) : error.message
}

function openUdp(n: number, address: string, port: number): void {
  const socket = createSocket({
    type: address.includes(':') ? 'udp6' : 'udp4',
    recvBufferSize: 4 << 20,
  })
  udp.set(n, socket)
  socket.on('error', (error) => printEvent({ on: 'failed', n, code: codeOf(error) }))
  socket.on('message', (octets, { address: from, port: fromPort }) =>
    printEvent({ on: 'datagram', n, from, port: fromPort, hex: octets.toString('hex') }),
  )
  socket.bind(port, address, () => printEvent({ on: 'ready', n, port: socket.address().port }))
}

function flood({ n, to, port, hex, step, last }: Extract<AgentCommand, { op: 'flood' }>): void {
  const template = Buffer.from(hex, 'hex')
  let distance = step
  const turn = (): void => {
    for (let i = 0; i < FLOOD_TURN && distance <= 65_536; i++, distance += step) {
      const id = (last + distance) & 0xffff
      const octets = Buffer.from(template)
      octets.writeUInt16BE(id, 0)
      udp.get(n)?.send(octets, port, to)
    }
    if (distance <= 65_536) setImmediate(turn)
    else printEvent({ on: 'flooded', n })
  }
  turn()
}

function listen(n: number, address: string, port: number): void {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const connection = -++accepted
    const { remoteAddress: from = '', remotePort: fromPort = 0 } = socket
    printEvent({ on: 'accepted', n, connection, from, port: fromPort })
    follow(connection, socket)
  })
  servers.set(n, server)
  server.on('error', (error) => printEvent({ on: 'failed', n, code: codeOf(error) }))
  server.listen(port, address, () => printEvent({ on: 'ready', n, port }))
}

function follow(n: number, socket: Socket): void {
  const connection: Connection = { socket, quiet: false, octets: 0 }
  connections.set(n, connection)
  socket.on('data', (octets) => {
    connection.octets += octets.length
    if (!connection.quiet) printEvent({ on: 'data', n, hex: octets.toString('hex') })
  })
  socket.on('end', () => printEvent({ on: 'ended', n }))
  socket.on('error', () => undefined)
  socket.on('close', () => printEvent({ on: 'closed', n }))
}

function open({ n, from, to, port }: Extract<AgentCommand, { op: 'connect' }>): void {
  const socket = connect({
    host: to,
    port,
    localAddress: from,
    allowHalfOpen: true,
    noDelay: true,
  })
  socket.on('connect', () => printEvent({ on: 'ready', n, port: socket.localPort ?? 0 }))
  follow(n, socket)
}

function control(n: number, op: 'end' | 'destroy' | 'pause' | 'resume' | 'quiet' | 'count'): void {
  const connection = connections.get(n)
  switch (op) {
    case 'end':
      connection?.socket.end()
      return
    case 'destroy':
      udp.get(n)?.close()
      udp.delete(n)
      servers.get(n)?.close()
      servers.delete(n)
      connection?.socket.destroy()
      connections.delete(n)
      return
    case 'pause':
      connection?.socket.pause()
      return
    case 'resume':
      connection?.socket.resume()
      return
    case 'quiet':
      if (connection !== undefined) connection.quiet = true
      return
    case 'count':
      printEvent({ on: 'count', n, octets: connection?.octets ?? -1 })
  }
}

function obey(command: AgentCommand): void {
  const { n } = command
  switch (command.op) {
    case 'udp':
      return openUdp(n, command.address, command.port)
    case 'send':
      udp.get(n)?.send(Buffer.from(command.hex, 'hex'), command.port, command.to)
      return
    case 'flood':
      return flood(command)
    case 'listen':
      return listen(n, command.address, command.port)
    case 'connect':
      return open(command)
    case 'write': {
      const octets = Buffer.from(command.hex, 'hex')
      const all = command.times === 1 ? octets : Buffer.concat(Array(command.times).fill(octets))
      connections.get(n)?.socket.write(all)
      return
    }
    case 'end':
    case 'destroy':
    case 'pause':
    case 'resume':
    case 'quiet':
    case 'count':
      control(n, command.op)
  }
}

createInterface({ input: process.stdin })
  .on('line', (line) => obey(JSON.parse(line) as AgentCommand))
  .on('close', () => process.exit(0))
process.stdout.write('{"on":"ready","n":0,"port":0}\n')
