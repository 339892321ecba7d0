// A process for kernel tests: sends datagrams of one size to one server, from a socket with the smallest possible buffer. Prints
// `waiting COUNT dropped COUNT` after the last send, then `sent COUNT` when no datagram waits.
//   udp-sender.ts ADDRESS PORT COUNT OCTETS

import { systemClock } from '../../../src/core/clock.ts'
import { parseAddress } from '../../../src/core/ip.ts'
import { loadUdp } from '../../../src/native/native.ts'
import { STAT_KEPT, STAT_SENT, STAT_WORDS } from '../../../src/native/udp/udp.ts'
import { ConnectedSocket } from '../../../src/proxy/sockets/connected-socket.ts'
import { Datagrams } from '../../../src/proxy/sockets/datagrams.ts'

const [address = '', port, count, octets] = process.argv.slice(2)
const datagrams = new Datagrams({ addon: loadUdp(), clock: systemClock, sendBuffer: 1 })
let dropped = 0
const socket = datagrams.connect(
  { family: parseAddress(address)?.family ?? 4, address, port: Number(port) },
  0,
  {
    received: () => undefined,
    fault: (code) => void process.stdout.write(`fault ${code}\n`),
    dropped: (more) => (dropped += more),
  },
)
if (!(socket instanceof ConnectedSocket)) throw new Error('Cannot connect')
const message = Buffer.alloc(Number(octets))
const stats = new Float64Array(STAT_WORDS)

for (let i = 0; i < Number(count); i++) {
  message.writeUInt32BE(i, 2)
  socket.send(message, 0, message.length, 0)
  if (i % 200 === 199) datagrams.flush()
}
datagrams.flush()
datagrams.readStats(socket.handle, stats)
process.stdout.write(`waiting ${stats[STAT_KEPT]} dropped ${dropped}\n`)
const timer = setInterval(() => {
  datagrams.readStats(socket.handle, stats)
  if (stats[STAT_KEPT]! > 0) return
  clearInterval(timer)
  process.stdout.write(`sent ${stats[STAT_SENT]}\n`)
  socket.close()
  datagrams.stop()
}, 20)
