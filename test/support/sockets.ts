// Tests of TCP run on both kinds of sockets: Node's own and, where it is built, the addon's.

import { test } from 'node:test'
import type { Clock } from '../../src/core/clock.ts'
import { isBuilt, loadTcp } from '../../src/native/native.ts'
import type { Streams } from '../../src/proxy/streams.ts'
import { NativeStreams } from '../../src/proxy/tcp-native.ts'
import { PortableStreams } from '../../src/proxy/tcp-portable.ts'
import { Transport } from './transport.ts'

export type SocketKind = 'portable' | 'native'

/** Streams at once; more than any test opens. */
const CAPACITY = 512

export function makeStreams(kind: SocketKind, clock: Clock): Streams {
  if (kind === 'portable') return new PortableStreams()
  return new NativeStreams({ addon: loadTcp(), clock, capacity: CAPACITY })
}

/** Why the addon's sockets can't be tested, or false. */
export function nativeIsLacking(): string | false {
  return isBuilt('tcp') ? false : 'tcp.node is not built'
}

/** One test for each kind; what `net` has opened is closed afterwards. */
export function testSockets(name: string, body: (net: Transport) => Promise<void>): void {
  for (const kind of ['portable', 'native'] as const) {
    const skip = kind === 'native' && nativeIsLacking()
    test(`${name}, ${kind} sockets`, { skip }, async () => {
      const net = new Transport((clock) => makeStreams(kind, clock))
      try {
        await body(net)
      } finally {
        await net.stop()
      }
    })
  }
}
