// A process for kernel tests: asks for COUNT names at once, `n0.SUFFIX` and on, from one UDP socket, and prints `answered COUNT` when every
// name has its answer. A name without an answer for a second is asked again.
//   node --import tsx burst-asker.ts SERVER SUFFIX COUNT

import { createSocket } from 'node:dgram'
import { decode, encode } from 'dns-packet'

const AGAIN_MS = 1000
/** Small enough for every socket's buffer. */
const WINDOW = 128

const [server = '', suffix = '', text = ''] = process.argv.slice(2)
const waiting = new Set<number>()
const left = Array.from({ length: Number(text) }, (_, i) => i)
let answered = 0

const socket = createSocket('udp4')
socket.on('message', (octets) => {
  const { id = -1, flags = 0 } = decode(octets)
  if (!waiting.delete(id)) return
  if ((flags & 15) === 0) answered++
  if (left.length + waiting.size > 0) fill()
  else finish()
})
socket.bind(0, fill)
setInterval(() => {
  for (const id of waiting) ask(id)
}, AGAIN_MS).unref()

function fill(): void {
  while (waiting.size < WINDOW) {
    const id = left.shift()
    if (id === undefined) return
    waiting.add(id)
    ask(id)
  }
}

function ask(id: number): void {
  const name = `n${id}.${suffix}`
  socket.send(
    encode({ type: 'query', id, flags: 0x0100, questions: [{ type: 'A', name }] }),
    53,
    server,
  )
}

function finish(): void {
  console.log(`answered ${answered}`)
  socket.close()
}
