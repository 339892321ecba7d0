// A test of the transport over the proxy's sockets.

import { test } from 'node:test'
import { nativeIsLacking } from './open-sockets.ts'
import { Transport } from './transport.ts'

/** Makes a test. Closes everything that `net` opened. */
export function testSockets(name: string, body: (net: Transport) => Promise<void>): void {
  test(name, { skip: nativeIsLacking() }, async () => {
    const net = new Transport()
    try {
      await body(net)
    } finally {
      await net.stop()
    }
  })
}
