// This file sets the mode of the table, finds the table, and removes it, without a daemon. `namegate datapath mode` and `namegate
// datapath detach` call it for the table of any daemon.

import { UnavailableError } from '../../core/errors.ts'
import type { NetlinkAddon } from '../../native/netfilter/nftables.ts'
import type { Mode } from '../entries.ts'
import { eachElement, readTable } from './netlink/read-elements.ts'
import { pack } from './netlink/keys.ts'
import { MODE_NUMBER } from './rules/layout.ts'
import { Message } from './netlink/message.ts'
import { encode, type Element } from './tables/mirror.ts'
import { DELETE_ELEMENT, Elements, NEW_ELEMENT } from './netlink/sets.ts'
import { Socket, unavailable } from './netlink/socket.ts'
import { encodeRemoval } from './rules/install.ts'

/** Throws UnavailableError if there is no table, or no privilege. */
export function setTableMode(netlink: NetlinkAddon, mode: Mode): void {
  const socket = new Socket(netlink, () => undefined)
  const message = new Message()
  try {
    if (readTable({ socket, message }) === undefined) {
      throw new UnavailableError(
        'Cannot set the mode: there is no nftables table of namegate in this network namespace: nothing is enforced here; start the daemon with datapath.kind nftables, or enter the right network namespace',
      )
    }
    const old: Element[] = []
    eachElement({ socket, message }, 'mode', ({ key }) => old.push({ key }))
    const elements = new Elements(message)
    message.beginBatch()
    for (const each of old) encode(message, elements, DELETE_ELEMENT, 'mode', each)
    if (mode !== 'enforce') {
      const key = pack(['mark'], [MODE_NUMBER[mode]])
      encode(message, elements, NEW_ELEMENT, 'mode', { key })
    }
    elements.flush()
    if (elements.last < 0) return
    message.endBatch(elements.last)
    const outcome = socket.apply(message)
    if (outcome !== undefined) throw unavailable(`set mode ${mode}`, outcome)
  } finally {
    socket.close()
  }
}

/** Returns true if the table exists. Throws UnavailableError if the kernel cannot list tables. */
export function hasTable(netlink: NetlinkAddon): boolean {
  const socket = new Socket(netlink, () => undefined)
  try {
    return readTable({ socket, message: new Message() }) !== undefined
  } finally {
    socket.close()
  }
}

/** Returns how many tables it removed: 1 or 0. Throws UnavailableError without the privilege. */
export function removeTable(netlink: NetlinkAddon): number {
  const socket = new Socket(netlink, () => undefined)
  const message = new Message()
  try {
    if (readTable({ socket, message }) === undefined) return 0
    message.beginBatch()
    message.endBatch(encodeRemoval(message))
    const outcome = socket.apply(message)
    if (outcome !== undefined) throw unavailable('remove nftables rules', outcome)
    return 1
  } finally {
    socket.close()
  }
}
