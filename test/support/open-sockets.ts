// The proxy's sockets for tests.

import type { Clock } from '../../src/core/clock.ts'
import { isBuilt, loadTcp, loadUdp } from '../../src/native/native.ts'
import { Datagrams } from '../../src/proxy/sockets/datagrams.ts'
import { Streams } from '../../src/proxy/sockets/streams.ts'

/** Bound of open streams; no test opens so many. */
const CAPACITY = 512

export function openStreams(clock: Clock): Streams {
  return new Streams({ addon: loadTcp(), clock, capacity: CAPACITY })
}

export function openDatagrams(clock: Clock): Datagrams {
  return new Datagrams({ addon: loadUdp(), clock })
}

/** The reason why tests of the proxy's sockets cannot run, or false. */
export function nativeIsLacking(): string | false {
  return isBuilt('tcp') && isBuilt('udp') ? false : 'tcp.node or udp.node is not built'
}
