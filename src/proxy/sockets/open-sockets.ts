// Which sockets carry TCP and UDP: the addon's where it is built and loads, else Node's. Both serve explicit mode alike; a
// listener of another mode says at its start that it needs the addon.

import type { Clock } from '../../core/clock.ts'
import { UnavailableError } from '../../core/errors.ts'
import { isBuilt, loadTcp, loadUdp } from '../../native/native.ts'
import { CONNECTIONS_MAX } from '../server/connection-table.ts'
import type { TurnClock } from '../turn-clock.ts'
import type { Datagrams } from './datagrams.ts'
import type { Streams } from './streams.ts'
import { NativeStreams } from './tcp-native.ts'
import { PortableStreams } from './tcp-portable.ts'
import { NativeDatagrams } from './udp-native.ts'
import { PortableDatagrams } from './udp-portable.ts'

export interface OpenStreamsOptions {
  readonly clock: Clock
  /** `limits.tcp-connections`. */
  readonly connections: number
  /** SO_MARK of connections that we begin; 0: none. Setting one needs CAP_NET_ADMIN or CAP_NET_RAW. */
  readonly mark: number
}

/** Besides the clients' connections: those that are refused in the turn they came in, and those towards servers. */
const MORE_STREAMS = 512

export function openStreams({ clock, connections, mark }: OpenStreamsOptions): Streams {
  if (!isBuilt('tcp')) return new PortableStreams()
  try {
    const capacity = Math.min(connections, CONNECTIONS_MAX) + MORE_STREAMS
    return new NativeStreams({ addon: loadTcp(), clock, capacity, mark })
  } catch (error) {
    // Built for another version of Node, or no memory: Node's own sockets are still there.
    if (error instanceof UnavailableError) return new PortableStreams()
    throw error
  }
}

export interface OpenDatagramsOptions {
  readonly clock: TurnClock
  /** SO_MARK of our own packets; 0: none. Setting one needs CAP_NET_ADMIN or CAP_NET_RAW. */
  readonly mark: number
  /** `limits.reply-sockets`. */
  readonly replySockets: number
}

export function openDatagrams(options: OpenDatagramsOptions): Datagrams {
  if (!isBuilt('udp')) return new PortableDatagrams()
  try {
    return new NativeDatagrams({ ...options, time: options.clock, addon: loadUdp() })
  } catch (error) {
    // Built for another version of Node, or no memory: Node's own sockets are still there.
    if (error instanceof UnavailableError) return new PortableDatagrams()
    throw error
  }
}
