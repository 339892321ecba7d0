// A client that never closes its socket, as a process: it asks one server the same question from one UDP port again and again, and prints
// a line for each answer, `ADDRESS RCODE DATA`. A `%` in the name becomes another number with each question.
//   node --import tsx kept-asker.ts SERVER NAME EVERY-MS

import { createSocket } from 'node:dgram'
import { decode, encode } from 'dns-packet'

const [server = '', name = '', every = '100'] = process.argv.slice(2)
const socket = createSocket(server.includes(':') ? 'udp6' : 'udp4')
let id = 0

socket.on('message', (octets, { address }) => {
  const { flags = 0, answers = [] } = decode(octets)
  const [first] = answers
  console.log(
    address,
    (flags & 15) === 0 ? 'NOERROR' : flags & 15,
    first?.type === 'A' ? first.data : '-',
  )
})
// An ICMP error of a closed port does not stop the client.
socket.on('error', () => undefined)
socket.bind(40_053)
setInterval(() => {
  id = (id + 1) & 0xffff
  const questions = [{ type: 'A', name: name.replace('%', String(id)) }] as const
  const query = encode({ type: 'query', id, flags: 0x0100, questions: [...questions] })
  socket.send(query, 53, server)
}, Number(every))
console.log('ready')
