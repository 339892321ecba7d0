// Says if this host forwards the packets of an endpoint. Without forwarding, a connection that policy allows hangs. Other programs can change
// the setting at any time, so it is read anew at each call.

import { readFileSync } from 'node:fs'
import type { Endpoint } from './registry.ts'

const IPV4 = '/proc/sys/net/ipv4'

/** The command that makes this host forward IPv4 packets. */
export const FORWARD_IPV4 = 'sysctl -w net.ipv4.ip_forward=1'

/** Returns true if this host forwards IPv4 packets between its interfaces. */
export function isForwarding(): boolean {
  return settingIn(`${IPV4}/ip_forward`) === '1'
}

/**
 * Returns the command after which this host forwards the IPv4 packets of an endpoint. Undefined if it forwards them. One interface can
 * forward while the host does not, and the port of a bridge may need no forwarding.
 */
export function forwardingRemedy({
  hook,
  addresses,
}: Pick<Endpoint, 'hook' | 'addresses'>): string | undefined {
  if (hook.kind !== 'interface' || hook.side !== 'ingress') return undefined
  if (!addresses.some(({ family }) => family === 4) || isForwarding()) return undefined
  const isOff = settingIn(`${IPV4}/conf/${hook.name}/forwarding`) === '0'
  const isPort = settingIn(`/sys/class/net/${hook.name}/brport/state`) !== undefined
  return isOff && !isPort ? FORWARD_IPV4 : undefined
}

/** The text of a file of the kernel. Undefined if it cannot be read. */
function settingIn(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return undefined
  }
}
