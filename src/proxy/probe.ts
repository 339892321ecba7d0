// Does a server answer at all? Each is asked `. NS` once at start (DESIGN "Admin API"); any answer with our id
// counts, whatever its RCODE. Off the packet path: one socket and one timer a probe.

import { createSocket } from 'node:dgram'
import type { Clock } from '../core/clock.ts'
import { RandomPool, type RandomSource } from './random.ts'
import type { ServerAddress } from './server-pool.ts'

export interface ProbeOptions {
  readonly clock: Clock
  readonly random: RandomSource
  readonly timeoutMs: number
}

/** `. NS IN`, recursion desired (RFC 1035 4.1), behind the two octets of the id. */
const ROOT_NS_QUERY = [1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1]

export async function probeServer(server: ServerAddress, options: ProbeOptions): Promise<boolean> {
  const id = new RandomPool(options.random).uint16()
  const socket = createSocket(server.family === 4 ? 'udp4' : 'udp6')
  return new Promise((resolve) => {
    let ended = false
    const end = (answered: boolean): void => {
      if (ended) return
      ended = true
      timer.cancel()
      // Its own listeners stay: a socket that isn't bound yet closes by them.
      socket.close()
      resolve(answered)
    }
    const timer = options.clock.after(options.timeoutMs, () => end(false))
    socket.on('error', () => end(false))
    socket.on('message', (message) => {
      if (message.length >= 12 && message.readUInt16BE(0) === id) end(true)
    })
    socket.connect(server.port, server.address, () => {
      if (!ended) socket.send(Uint8Array.from([id >> 8, id & 0xff, ...ROOT_NS_QUERY]))
    })
  })
}
