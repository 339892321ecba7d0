// The native parts as the nftables adapter uses them, but for another network namespace: where they would open a socket, one
// comes that the launcher opened there; where they would look at interfaces, there are those two that the command has.
// All else is the addons' own, since a socket stays in its namespace whoever holds it.

import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import type { ConntrackAddon, Posix } from '../native/native.ts'
import type { NetlinkAddon } from '../native/netfilter/nftables.ts'
import type { InnerSockets } from './launcher.ts'
import { UPLINK_INTERFACE } from './uplink.ts'

export interface InnerAddons {
  readonly netlink: NetlinkAddon
  readonly conntrack: ConntrackAddon
  readonly posix: Posix
}

export interface OuterAddons {
  readonly netlink: NetlinkAddon
  readonly conntrack: ConntrackAddon
  readonly posix: Posix
}

const LOOPBACK = 1
const ETHERNET = 1
const LOOPBACK_TYPE = 772

/** `pid`: the launcher. */
export function innerAddons(outer: OuterAddons, sockets: InnerSockets, pid: number): InnerAddons {
  const left = [...sockets.netlink]
  const next = (): number => left.shift() ?? -constants.errno.EMFILE
  const uplink = (): number => interfaceIndex(UPLINK_INTERFACE, pid)
  return {
    netlink: { ...outer.netlink, nlOpen: next },
    conntrack: { ...outer.conntrack, ctOpen: next },
    posix: {
      ...outer.posix,
      ifIndex: (name) => (name === UPLINK_INTERFACE ? uplink() : -constants.errno.ENODEV),
      ifType: (name) => (name === 'lo' ? LOOPBACK_TYPE : ETHERNET),
      ifMaster: () => 0,
      ifList: () => [LOOPBACK, 'lo', uplink(), UPLINK_INTERFACE],
      linkSocket: () => sockets.links,
    },
  }
}

/** `-ENODEV` when it is not there. */
function interfaceIndex(name: string, pid: number): number {
  const table = readFileSync(`/proc/${pid}/net/dev_mcast`, 'utf8')
  for (const line of table.split('\n')) {
    const [index, device] = line.trim().split(/\s+/)
    if (device === name) return Number(index)
  }
  return -constants.errno.ENODEV
}
