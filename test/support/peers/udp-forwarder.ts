// A process for kernel tests: the transport, forwarding to one server, with the real clock; see forwarder.ts.
// Prints `ready PORT`, then once a second `faults COUNT` if the count has changed.
//   udp-forwarder.ts ADDRESS PORT

import { systemClock } from '../../../src/core/clock.ts'
import { parseAddress } from '../../../src/core/ip.ts'
import { Forwarder } from './forwarder.ts'

const [address = '', port] = process.argv.slice(2)
const family = parseAddress(address)?.family ?? 4
const forwarder = Forwarder.start({
  servers: [{ family, address, port: Number(port) }],
  clock: systemClock,
})
process.stdout.write(`ready ${forwarder.udpPort}\n`)
let told = 0
setInterval(() => {
  const faults = forwarder.upstream.udp[0]?.counters.socketErrors ?? 0
  if (faults !== told) process.stdout.write(`faults ${faults}\n`)
  told = faults
}, 1000)
