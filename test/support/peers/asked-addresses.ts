// A client that asks a different address with each query, as a process, and checks the address from which each answer comes. Some
// queries are outstanding at once. A query without an answer is asked again, at most ten times.
//   node --import tsx asked-addresses.ts NAME COUNT 4|6
// Prints one line of JSON: the number of addresses that answered, and of answers from an address that was not asked.

import { createSocket } from 'node:dgram'
import { encode } from 'dns-packet'

const AT_ONCE = 64
const PATIENCE_MS = 2000
const TRIES_MAX = 10

const [name = '', count = '1', family = '4'] = process.argv.slice(2)
const total = Number(count)
const socket = createSocket({ type: family === '4' ? 'udp4' : 'udp6', recvBufferSize: 1 << 20 })
const query = encode({ type: 'query', id: 0, flags: 0x0100, questions: [{ type: 'A', name }] })
const tries = new Uint8Array(total)
const sentAt = new Map<number, number>()
let [next, answered, strange] = [0, 0, 0]

/** 10.96.0.0 and on; fd00:96::1:0 and on, in groups of 16 bits without leading zeros. */
function addressOf(i: number): string {
  if (family === '4') return `10.${96 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`
  return `fd00:96::${((i >> 16) + 1).toString(16)}:${(i & 0xffff).toString(16)}`
}

const indexes = new Map<string, number>()

function ask(i: number): void {
  sentAt.set(i, performance.now())
  tries[i]! += 1
  indexes.set(addressOf(i), i)
  socket.send(query, 53, addressOf(i))
}

function fill(): void {
  while (sentAt.size < AT_ONCE && next < total) ask(next++)
  if (sentAt.size === 0) {
    console.log(JSON.stringify({ answered, strange }))
    process.exit(0)
  }
}

socket.on('message', (_octets, { address, port }) => {
  const i = indexes.get(address)
  if (i === undefined || port !== 53) {
    strange++
    return
  }
  if (sentAt.delete(i)) answered++
  fill()
})
setInterval(() => {
  const now = performance.now()
  for (const [i, at] of sentAt) {
    if (now - at < PATIENCE_MS) continue
    if (tries[i]! < TRIES_MAX) ask(i)
    else sentAt.delete(i)
  }
  fill()
}, 100)
socket.bind(0, fill)
