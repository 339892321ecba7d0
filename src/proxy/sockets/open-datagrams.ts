// Which sockets carry UDP: the addon's where it is built and loads, else Node's. Both serve explicit mode alike; a
// listener of another mode says at its start that it needs the addon.

import { UnavailableError } from '../../core/errors.ts'
import { isBuilt, loadUdp } from '../../native/native.ts'
import type { Datagrams } from './datagrams.ts'
import type { TurnClock } from '../turn-clock.ts'
import { NativeDatagrams } from './udp-native.ts'
import { PortableDatagrams } from './udp-portable.ts'

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
