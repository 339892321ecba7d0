// Runs tests of the transport on both kinds of sockets: those of Node and, if it is built, those of the addon.

import { test } from 'node:test'
import type { Clock } from '../../src/core/clock.ts'
import { isBuilt, loadTcp, loadUdp } from '../../src/native/native.ts'
import type { Datagrams } from '../../src/proxy/sockets/datagrams.ts'
import type { Streams } from '../../src/proxy/sockets/streams.ts'
import { NativeStreams } from '../../src/proxy/sockets/tcp-native.ts'
import { PortableStreams } from '../../src/proxy/sockets/tcp-portable.ts'
import { NativeDatagrams } from '../../src/proxy/sockets/udp-native.ts'
import { PortableDatagrams } from '../../src/proxy/sockets/udp-portable.ts'
import { Transport } from './transport.ts'

export const SOCKET_KINDS = ['portable', 'native'] as const
export type SocketKind = (typeof SOCKET_KINDS)[number]

/** Bound of open streams; no test opens so many. */
const CAPACITY = 512

export function makeStreams(kind: SocketKind, clock: Clock): Streams {
  if (kind === 'portable') return new PortableStreams()
  return new NativeStreams({ addon: loadTcp(), clock, capacity: CAPACITY })
}

export function makeDatagrams(kind: SocketKind, clock: Clock): Datagrams {
  if (kind === 'portable') return new PortableDatagrams()
  return new NativeDatagrams({ addon: loadUdp(), clock })
}

/** The reason why tests of the addon's sockets cannot run, or false. */
export function nativeIsLacking(): string | false {
  return isBuilt('tcp') && isBuilt('udp') ? false : 'tcp.node or udp.node is not built'
}

/** Makes one test for each kind. Closes everything that `net` opened. */
export function testSockets(
  name: string,
  body: (net: Transport, kind: SocketKind) => Promise<void>,
): void {
  for (const kind of SOCKET_KINDS) {
    const skip = kind === 'native' && nativeIsLacking()
    test(`${name}, ${kind} sockets`, { skip }, async () => {
      const net = new Transport({
        makeStreams: (clock) => makeStreams(kind, clock),
        makeDatagrams: (clock) => makeDatagrams(kind, clock),
      })
      try {
        await body(net, kind)
      } finally {
        await net.stop()
      }
    })
  }
}
