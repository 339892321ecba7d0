// A process for kernel tests: the addon's TCP listeners in one mode, both families, on one port. Prints `ready PORT`, then for
// each query a line `CLIENT asks SERVER PORT on INTERFACE`, and answers REFUSED.
// It can start with few descriptors. If it cannot accept a connection, it prints `fault CODE MILLISECONDS`.
// Instead of listening it can connect with a marked socket. It prints `closed FAULT` at the end of the connection.
//   tcp-listener.ts MODE PORT [DESCRIPTORS]
//   tcp-listener.ts connect PORT ADDRESS

import { closeSync, openSync } from 'node:fs'
import { systemClock } from '../../../src/core/clock.ts'
import { formatAddress, type Family } from '../../../src/core/ip.ts'
import { LOCAL } from '../../../src/dns/codes.ts'
import { QueryView } from '../../../src/dns/query.ts'
import { MessageView } from '../../../src/dns/message-view.ts'
import { LOCAL_ANSWER_MAX, writeLocalAnswer } from '../../../src/dns/reply.ts'
import { loadTcp } from '../../../src/native/native.ts'
import { type MessageBatch, BatchCollector } from '../../../src/proxy/messages/batch.ts'
import { Streams, type StreamAcceptor } from '../../../src/proxy/sockets/streams.ts'
import { TcpServer } from '../../../src/proxy/server/tcp-server.ts'

const MODES = ['explicit', 'tproxy', 'redirect'] as const

const view = new QueryView()
const reply = MessageView.of(new Uint8Array(LOCAL_ANSWER_MAX))

function printQuery(batch: MessageBatch, row: number): void {
  const family: Family = batch.families[row] === 4 ? 4 : 6
  const client = formatAddress(family, batch.addresses, row * 16)
  const asked = formatAddress(family, batch.askedAddresses, row * 16)
  const where = `${batch.askedPorts[row]} on ${batch.interfaces[row]}`
  process.stdout.write(`${client} asks ${asked} ${where}\n`)
}

const clock = systemClock
const collector = new BatchCollector({
  clock,
  onBatch: (batch) => {
    for (let row = 0; row < batch.count; row++) {
      const query = batch.view(row, new MessageView())
      view.read(query.octets, query.offset, query.length)
      printQuery(batch, row)
      writeLocalAnswer(reply, query, view, LOCAL.deniedRefused)
      server.reply(batch.channels[row] ?? 0, reply, view.id)
    }
  },
})
const streams = new Streams({ addon: loadTcp(), clock, capacity: 1024, mark: 0x4e47 })
const server: TcpServer = new TcpServer({ clock, collector, streams })
if (process.argv[2] === 'connect') await connectOnly(Number(process.argv[3]), process.argv[4] ?? '')

const acceptor: StreamAcceptor = {
  accept: (stream, arrival) => server.accept(stream, arrival),
  acceptFault: (code) => void process.stdout.write(`fault ${code} ${Math.round(clock.now())}\n`),
}
const mode = MODES.find((each) => each === process.argv[2]) ?? 'explicit'
let port = Number(process.argv[3])
for (const family of [4, 6] as const) {
  const listener = streams.listen({ family, octets: new Uint8Array(16), port, mode }, acceptor)
  port = listener.port
}
const spare = process.argv[4]
if (spare !== undefined) leave(Number(spare))
process.stdout.write(`ready ${port}\n`)

/** Takes all descriptors except so many. */
function leave(count: number): void {
  const taken: number[] = []
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'))
  } catch {
    for (const fd of taken.slice(-count)) closeSync(fd)
  }
}

async function connectOnly(target: number, address: string): Promise<void> {
  const fault = await new Promise<boolean>((resolve) => {
    streams.connect(
      { family: 4, address, port: target },
      {
        received: () => undefined,
        ended: () => undefined,
        taken: () => undefined,
        closed: resolve,
      },
    )
  })
  process.stdout.write(`closed ${fault}\n`)
  process.exit(0)
}
