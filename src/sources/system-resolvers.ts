// What `system` means among the upstream servers: the `nameserver` lines of resolv.conf (resolv.conf(5)).

import { readFileSync } from 'node:fs'
import { parseAddress } from '../core/ip.ts'
import type { SocketAddress } from '../core/socket-address.ts'

const RESOLV_CONF = '/etc/resolv.conf'
const DNS_PORT = 53

export function systemResolvers(file = RESOLV_CONF): readonly SocketAddress[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return []
  }
  return text.split('\n').flatMap((line) => {
    const [keyword, address] = line.trim().split(/\s+/)
    const parsed = keyword === 'nameserver' ? parseAddress(address ?? '') : undefined
    return parsed === undefined ? [] : [{ ...parsed, port: DNS_PORT }]
  })
}
