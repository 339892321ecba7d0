// Looks for the table, or takes it away, whoever made it and whether its daemon lives or not.

import type { NetlinkAddon } from '../../../native/netfilter/nftables.ts'
import { readTable } from '../netlink/read-elements.ts'
import { encodeRemoval } from './install.ts'
import { Message } from '../netlink/message.ts'
import { Socket, unavailable } from '../netlink/socket.ts'

/** Whether it is there. Throws UnavailableError where nobody can look. */
export function hasTable(netlink: NetlinkAddon): boolean {
  const socket = new Socket(netlink, () => undefined)
  try {
    return readTable(socket, new Message()) !== undefined
  } finally {
    socket.close()
  }
}

/** Tables that were there: 1, or 0. Throws UnavailableError without the privilege. */
export function removeTable(netlink: NetlinkAddon): number {
  const socket = new Socket(netlink, () => undefined)
  const message = new Message()
  try {
    if (readTable(socket, message) === undefined) return 0
    message.beginBatch()
    message.endBatch(encodeRemoval(message))
    const outcome = socket.apply(message)
    if (outcome !== undefined) throw unavailable('remove nftables rules', outcome)
    return 1
  } finally {
    socket.close()
  }
}
