// `innerAddons` makes native addons with which the nftables adapter works in the command's network namespace. A socket stays in the
// namespace that it was opened in. Therefore the functions that open a socket return a socket that the launcher opened in the command's
// namespace. The functions about interfaces know loopback and the uplink only.

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

const LOOPBACK = 1
const ETHERNET = 1
const LOOPBACK_TYPE = 772

/** Returns the addons. `outer`: the addons of this process. `sockets`: the sockets of the launcher. `pid`: the launcher's process. */
export function innerAddons(outer: InnerAddons, sockets: InnerSockets, pid: number): InnerAddons {
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

/** Returns the index of an interface in the namespace of process `pid`, or `-ENODEV` if there is no such interface. */
function interfaceIndex(name: string, pid: number): number {
  const table = readFileSync(`/proc/${pid}/net/dev_mcast`, 'utf8')
  for (const line of table.split('\n')) {
    const [index, device] = line.trim().split(/\s+/)
    if (device === name) return Number(index)
  }
  return -constants.errno.ENODEV
}
