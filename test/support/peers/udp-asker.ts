// A process for kernel tests: asks many servers over UDP from one socket, as fast as answers arrive, and prints
// `asked COUNT answered COUNT foreign COUNT`. A foreign answer comes from an address that was not asked that question.
// The question names the server, so that a repeated answer differs from another server's answer.
//   udp-asker.ts FIRST-ADDRESS COUNT

import { systemClock } from '../../../src/core/clock.ts'
import { parseAddress } from '../../../src/core/ip.ts'
import { loadUdp } from '../../../src/native/native.ts'
import { type MessageBatch, BatchCollector } from '../../../src/proxy/messages/batch.ts'
import { ClientColumns } from '../../../src/proxy/messages/client-columns.ts'
import { Datagrams } from '../../../src/proxy/sockets/datagrams.ts'
import { queryFor } from './upstream.ts'
import { MessageView } from '../../../src/dns/message-view.ts'

/** The number of outstanding queries. Ids tell them apart. */
const WINDOW = 512
/** A query without an answer is asked again after this time. */
const AGAIN_MS = 500
const DNS = 53

const first = parseAddress(process.argv[2] ?? '') ?? fail('an address is wanted')
const count = Number(process.argv[3])
const servers = new ClientColumns(WINDOW)
const query = queryFor('quiet.00000000.test')
/** The position of the eight digits: after the header, `quiet` and two lengths. */
const DIGITS_AT = 12 + 6 + 1
const done = new Uint8Array(count)
/** The last server asked with each id; -1 once it has answered. */
const asked = new Int32Array(WINDOW).fill(-1)
let next = 0
let answered = 0
let foreign = 0

const collector = new BatchCollector({ clock: systemClock, onBatch: take })
const datagrams = new Datagrams({ addon: loadUdp(), clock: systemClock })
datagrams.fill(collector)
const listener = datagrams.listen({
  channel: 0,
  family: first.family,
  octets: new Uint8Array(16),
  port: 0,
  mode: 'explicit',
})
for (let id = 0; id < WINDOW; id++) askNext(id)
const again = setInterval(() => {
  for (let id = 0; id < WINDOW; id++) if (asked[id]! >= 0) send(id)
}, AGAIN_MS)

function askNext(id: number): void {
  asked[id] = next < count ? next++ : -1
  if (asked[id]! >= 0) send(id)
}

function send(id: number): void {
  servers.families[id] = first.family
  servers.ports[id] = DNS
  writeServer(asked[id]!, servers.addresses, id * 16)
  query.write(asked[id]!.toString(16).padStart(8, '0'), DIGITS_AT, 'latin1')
  listener.send(servers, id, MessageView.of(query), id)
}

/** Writes the address that is `index` after the first. */
function writeServer(index: number, into: Uint8Array, at: number): void {
  into.set(first.octets, at)
  let rest = index
  for (let i = first.family === 4 ? 3 : 15; rest > 0; i--) {
    rest += into[at + i]!
    into[at + i] = rest & 0xff
    rest >>= 8
  }
}

const expected = new Uint8Array(16)

function take(batch: MessageBatch): void {
  for (let row = 0; row < batch.count; row++) {
    const octets = Buffer.from(batch.view(row, new MessageView()).copy().buffer)
    const index = Number.parseInt(octets.toString('latin1', DIGITS_AT, DIGITS_AT + 8), 16)
    expected.fill(0)
    writeServer(index, expected, 0)
    const same = expected.every((octet, i) => batch.addresses[row * 16 + i] === octet)
    if (!same || batch.ports[row] !== DNS) foreign++
    if (!same || done[index] === 1) continue
    done[index] = 1
    answered++
    askNext(octets.readUInt16BE(0))
  }
  if (answered < count) return
  process.stdout.write(`asked ${count} answered ${answered} foreign ${foreign}\n`)
  clearInterval(again)
  listener.stop()
  datagrams.stop()
}

function fail(text: string): never {
  throw new Error(text)
}
