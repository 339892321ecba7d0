// A process for kernel tests: the addon's UDP listeners in one mode, both families, on one port. Prints `ready PORT`, then for
// each query a line `CLIENT asks SERVER PORT on INTERFACE`, and answers REFUSED. Some names change this:
//   quiet.*      no line
//   sizeN.*      an answer of N octets, the last of them after the question
//   counters.*   a line `replies opened N raw N failed N`
//   udp-listener.ts MODE PORT [ADDRESS]

import { systemClock } from '../../../src/core/clock.ts'
import { formatAddress, parseAddress, type Family } from '../../../src/core/ip.ts'
import { LOCAL } from '../../../src/dns/codes.ts'
import { QueryView } from '../../../src/dns/query.ts'
import { LOCAL_ANSWER_MAX, writeLocalAnswer } from '../../../src/dns/reply.ts'
import { loadUdp } from '../../../src/native/native.ts'
import { type MessageBatch, BatchCollector } from '../../../src/proxy/messages/batch.ts'
import type { UdpListener } from '../../../src/proxy/sockets/udp-listener.ts'
import { Datagrams } from '../../../src/proxy/sockets/datagrams.ts'
import { MessageView } from '../../../src/dns/message-view.ts'

const MODES = ['explicit', 'tproxy', 'redirect'] as const

const view = new QueryView()
const scratch = new Uint8Array(LOCAL_ANSWER_MAX + 8192)
const listeners: UdpListener[] = []
const collector = new BatchCollector({
  clock: systemClock,
  onBatch: (batch) => {
    for (let row = 0; row < batch.count; row++) answer(batch, row)
  },
})
const datagrams = new Datagrams({ addon: loadUdp(), clock: systemClock, mark: 0x4e47 })
datagrams.fill(collector)

const mode = MODES.find((each) => each === process.argv[2]) ?? 'explicit'
const address = parseAddress(process.argv[4] ?? '')
let port = Number(process.argv[3])
for (const family of address === undefined ? ([4, 6] as const) : [address.family]) {
  const octets = address?.octets ?? new Uint8Array(16)
  const channel = listeners.length
  const listener = datagrams.listen({ channel, family, octets, port, mode })
  listeners.push(listener)
  port = listener.port
}
process.stdout.write(`ready ${port}\n`)

function answer(batch: MessageBatch, row: number): void {
  const query = batch.view(row, new MessageView())
  const { octets, offset } = query
  view.read(octets, offset, query.length)
  const label = Buffer.from(octets.subarray(offset + 13, offset + 13 + octets[offset + 12]!))
  const name = label.toString('latin1')
  const reply = MessageView.of(scratch)
  writeLocalAnswer(reply, query, view, LOCAL.deniedRefused)
  if (name.startsWith('size')) reply.length = Number(name.slice(4))
  if (name === 'counters') tellReplies()
  else if (name !== 'quiet') printQuery(batch, row)
  listeners[batch.channels[row]!]?.send(batch, row, reply, view.id)
}

function printQuery(batch: MessageBatch, row: number): void {
  const family: Family = batch.families[row] === 4 ? 4 : 6
  const client = formatAddress(family, batch.addresses, row * 16)
  const asked = formatAddress(family, batch.askedAddresses, row * 16)
  const where = `${batch.askedPorts[row]} on ${batch.interfaces[row]}`
  process.stdout.write(`${client} asks ${asked} ${where}\n`)
}

function tellReplies(): void {
  const { opened, raw, openFailures } = datagrams.replies.counters
  process.stdout.write(`replies opened ${opened} raw ${raw} failed ${openFailures}\n`)
}
