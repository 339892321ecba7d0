// Says if this host forwards the packets of an endpoint. Without forwarding, a connection that policy allows hangs. Other programs can change
// the setting at any time, so it is read anew at each call.

import { readFileSync } from 'node:fs'
import type { Endpoint } from './registry.ts'

const IPV4 = '/proc/sys/net/ipv4'

/**
 * Returns the command after which this host forwards the IPv4 packets of an endpoint. Undefined if it forwards them.
 */
export function forwardingRemedy({
  hook,
  addresses,
}: Pick<Endpoint, 'hook' | 'addresses'>): string | undefined {
  if (hook.kind !== 'interface' || hook.side !== 'ingress') return undefined
  return addresses.some(({ family }) => family === 4) ? interfaceRemedy(hook.name) : undefined
}

/**
 * Returns the command after which this host forwards IPv4 packets that arrive at an interface. Undefined if it forwards them. The kernel
 * reads the setting of the interface, to which it copies each change of the setting of the host. The port of a bridge may need no forwarding.
 */
export function interfaceRemedy(name: string): string | undefined {
  const isOff = settingIn(`${IPV4}/conf/${name}/forwarding`) === '0'
  const isPort = settingIn(`/sys/class/net/${name}/brport/state`) !== undefined
  if (!isOff || isPort) return undefined
  const isHostOff = settingIn(`${IPV4}/ip_forward`) === '0'
  // In the name of a setting, a slash stands for a dot.
  const key = isHostOff ? 'ip_forward' : `conf.${name.replaceAll('.', '/')}.forwarding`
  return `sysctl -w net.ipv4.${key}=1`
}

/** The text of a file of the kernel. Undefined if it cannot be read. */
function settingIn(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return undefined
  }
}
