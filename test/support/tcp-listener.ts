// A process for kernel tests: the addon's TCP listeners in one mode, both families, on one port. Prints `ready`, then for
// each query a line `CLIENT asks SERVER PORT on INTERFACE`, and answers REFUSED.
//   tcp-listener.ts MODE PORT

import { systemClock } from '../../src/core/clock.ts'
import { formatAddress, type Family } from '../../src/core/ip.ts'
import { LOCAL } from '../../src/dns/codes.ts'
import { QueryView } from '../../src/dns/query.ts'
import { LOCAL_ANSWER_MAX, writeLocalAnswer } from '../../src/dns/reply.ts'
import { loadTcp } from '../../src/native/native.ts'
import type { MessageBatch } from '../../src/proxy/batch.ts'
import { BatchCollector } from '../../src/proxy/collector.ts'
import { NativeStreams } from '../../src/proxy/tcp-native.ts'
import { TcpServer } from '../../src/proxy/tcp-server.ts'

const MODES = ['explicit', 'tproxy', 'redirect'] as const

const view = new QueryView()
const scratch = new Uint8Array(LOCAL_ANSWER_MAX)

function tell(batch: MessageBatch, row: number): void {
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
      const query = batch.octets(row)
      const offset = batch.offset(row)
      view.read(query, offset, batch.length(row))
      tell(batch, row)
      const length = writeLocalAnswer(scratch, 0, query, offset, view, LOCAL.deniedRefused)
      server.reply(batch.channels[row] ?? 0, scratch, 0, length, view.id)
    }
  },
})
const streams = new NativeStreams({ addon: loadTcp(), clock, capacity: 1024 })
const server: TcpServer = new TcpServer({ clock, collector, streams })
const mode = MODES.find((each) => each === process.argv[2]) ?? 'explicit'
const port = Number(process.argv[3])
for (const family of [4, 6] as const) {
  await server.listen({ family, octets: new Uint8Array(16), port, mode })
}
process.stdout.write('ready\n')
