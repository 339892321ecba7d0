// `askServer` asks one server one question, over UDP or TCP, with a time limit. `namegate ask` uses this code. The proxy has transports of
// its own.

import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { systemClock } from '../core/clock.ts'
import { UnavailableError } from '../core/errors.ts'
import { formatAddress } from '../core/ip.ts'
import { formatSocketAddress, type SocketAddress } from '../core/socket-address.ts'

const LIMIT_MS = 6000
/** The octets of a message's id. Also the octets of the length in front of a message over TCP (RFC 1035 4.2.2). */
const TWO = 2

/** No answer came from a server. `reason` is the part of the message that does not name the server. */
export class NoAnswerError extends UnavailableError {
  readonly reason: string

  constructor(where: string, reason: string) {
    super(`No answer from ${where}: ${reason}`)
    this.reason = reason
  }
}

/** Sends `query` (wire format) and returns the answer (wire format). Throws NoAnswerError if no answer comes within `limitMs`. */
export async function askServer(
  server: SocketAddress,
  query: Uint8Array,
  overTcp: boolean,
  limitMs = LIMIT_MS,
): Promise<Uint8Array> {
  return await new Promise((resolve, reject) => {
    const where = `${formatSocketAddress(server)} over ${overTcp ? 'TCP' : 'UDP'}`
    const fail = (reason: string): void => {
      close()
      reject(new NoAnswerError(where, reason))
    }
    const timer = systemClock.after(limitMs, () => fail(`no answer in ${limitMs / 1000} s`))
    const done = (answer: Uint8Array): void => {
      close()
      resolve(answer)
    }
    const stop = overTcp
      ? overStream(server, query, done, fail)
      : overDatagram(server, query, done, fail)
    function close(): void {
      timer.cancel()
      stop()
    }
    // The open socket keeps the process alive until an answer arrives or the time is over. The clock's timers do not keep it alive.
  })
}

type Done = (answer: Uint8Array) => void
type Fail = (reason: string) => void

function overDatagram(
  server: SocketAddress,
  query: Uint8Array,
  done: Done,
  fail: Fail,
): () => void {
  const socket = createSocket(server.family === 4 ? 'udp4' : 'udp6')
  let open = true
  socket.on('error', (error) => fail(error.message))
  socket.on('message', (message) => {
    if (sameId(message, query)) done(message)
  })
  // With a callback, a failure would call it too, and no event would report the failure.
  socket.once('connect', () => socket.send(query))
  socket.connect(server.port, formatAddress(server.family, server.octets))
  return () => {
    if (open) socket.close()
    open = false
  }
}

function overStream(server: SocketAddress, query: Uint8Array, done: Done, fail: Fail): () => void {
  const host = formatAddress(server.family, server.octets)
  const socket = connect({ host, port: server.port })
  let received = Buffer.alloc(0)
  socket.on('error', (error) => fail(error.message))
  socket.on('close', () => fail('the connection was closed'))
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk])
    if (received.length < TWO || received.length < TWO + received.readUInt16BE(0)) return
    done(received.subarray(TWO, TWO + received.readUInt16BE(0)))
  })
  const frame = Buffer.alloc(TWO + query.length)
  frame.writeUInt16BE(query.length)
  frame.set(query, TWO)
  socket.write(frame)
  return () => {
    socket.removeAllListeners('close')
    socket.destroy()
  }
}

function sameId(message: Uint8Array, query: Uint8Array): boolean {
  return message.length >= TWO && message[0] === query[0] && message[1] === query[1]
}
