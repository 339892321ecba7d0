// The addresses of this host's own interfaces, loopback included, as prefixes of full length. They are class
// host in the datapath and never get labels from answers.

import { networkInterfaces } from 'node:os'
import { formatPrefix, parseAddress, type Prefix } from '../core/ip.ts'

export function nodeAddresses(): readonly Prefix[] {
  const byText = new Map<string, Prefix>()
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { address } of addresses ?? []) {
      const parsed = parseAddress(address)
      if (parsed !== undefined) byText.set(formatPrefix(parsed), parsed)
    }
  }
  return [...byText.values()]
}
