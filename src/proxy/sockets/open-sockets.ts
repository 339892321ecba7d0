// This file chooses the sockets for TCP and UDP: the native part's if it is built and loads, otherwise Node's. Both can serve
// explicit mode. Without the native part, a listener of another mode fails at its start.

import type { Clock, TurnClock } from '../../core/clock.ts'
import { UnavailableError } from '../../core/errors.ts'
import { isBuilt, loadTcp, loadUdp } from '../../native/native.ts'
import { CONNECTIONS_MAX } from '../server/connection-table.ts'
import type { Datagrams } from './datagrams.ts'
import type { Streams } from './streams.ts'
import { NativeStreams } from './tcp-native.ts'
import { PortableStreams } from './tcp-portable.ts'
import { NativeDatagrams } from './udp-native.ts'
import { PortableDatagrams } from './udp-portable.ts'

/** Streams in addition to the connections of clients: connections that are refused in the turn they arrive, and connections to servers. */
const MORE_STREAMS = 512

/**
 * Opens the TCP sockets. `connections` is `limits.tcp-connections`. `mark` is the SO_MARK of packets to servers; 0: none. A mark
 * needs CAP_NET_ADMIN or CAP_NET_RAW.
 */
export function openStreams(clock: Clock, connections: number, mark: number): Streams {
  if (!isBuilt('tcp')) return new PortableStreams()
  try {
    const capacity = Math.min(connections, CONNECTIONS_MAX) + MORE_STREAMS
    return new NativeStreams({ addon: loadTcp(), clock, capacity, mark })
  } catch (error) {
    // The addon is built for another version of Node, or there is no memory. Node's sockets can still work.
    if (error instanceof UnavailableError) return new PortableStreams()
    throw error
  }
}

/** Opens the UDP sockets. `replySockets` is `limits.reply-sockets`; `mark` is the same as for `openStreams`. */
export function openDatagrams(clock: TurnClock, replySockets: number, mark: number): Datagrams {
  if (!isBuilt('udp')) return new PortableDatagrams()
  try {
    return new NativeDatagrams({ addon: loadUdp(), clock, time: clock, mark, replySockets })
  } catch (error) {
    // The addon is built for another version of Node, or there is no memory. Node's sockets can still work.
    if (error instanceof UnavailableError) return new PortableDatagrams()
    throw error
  }
}
