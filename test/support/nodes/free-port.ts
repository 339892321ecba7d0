// Finds ports for programs that are configured with one before they start.

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

// Above the ports of the Kubernetes testbed, and below those that the kernel gives to a socket without a port: between the look
// and the program's own bind, no other socket receives such a port.
const FIRST = 29_100
const LAST = 32_767

// Test processes that run beside each other start at different places.
let next = FIRST + ((process.pid * 37) % (LAST - FIRST))

/** A port whose UDP and TCP sockets are free now on every IPv4 address. One process receives each port once. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries <= LAST - FIRST; tries++) {
    const port = next
    next = port === LAST ? FIRST : port + 1
    if ((await isTcpFree(port)) && (await isUdpFree(port))) return port
  }
  throw new Error(`no free port from ${FIRST} to ${LAST}`)
}

/** True if a TCP socket can listen on the port now, on every IPv4 address. */
export async function isTcpFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, '0.0.0.0'), 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}

async function isUdpFree(port: number): Promise<boolean> {
  const socket = createSocket('udp4')
  try {
    await once(socket.bind(port, '0.0.0.0'), 'listening')
    return true
  } catch {
    return false
  } finally {
    socket.close()
  }
}
