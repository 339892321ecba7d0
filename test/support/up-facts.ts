// The facts that `namegate up` finds on a host, for tests of its decisions: a namespace "box" whose veth eth0 leads to box0 of this host.

import assert from 'node:assert/strict'
import type { Network, Nic, NicAddress } from '../../src/cli/up/network.ts'
import type { Abilities, Resolvers, UpPlan } from '../../src/cli/up/plan.ts'
import { parseAddress } from '../../src/core/ip.ts'
import { formatSocketAddress, type SocketAddress } from '../../src/core/socket-address.ts'

export function server(text: string): SocketAddress {
  const parsed = parseAddress(text)
  assert.ok(parsed !== undefined)
  return { ...parsed, port: 53 }
}

export function resolvers(file: string, ...servers: readonly string[]): Resolvers {
  return { file, servers: servers.map(server) }
}

export function address(text: string): NicAddress {
  const [host = '', length = '0'] = text.split('/')
  const family = host.includes(':') ? 6 : 4
  return { family, address: host, length: Number(length), isLinkLocal: host.startsWith('fe80') }
}

export function nic(fields: Partial<Nic>, ...addresses: readonly string[]): Nic {
  return {
    index: 2,
    name: 'eth0',
    kind: 'veth',
    peer: 7,
    peerNamespace: undefined,
    isUp: true,
    master: undefined,
    addresses: addresses.map(address),
    ...fields,
  }
}

export const LO = nic({ index: 1, name: 'lo', kind: '', peer: 0 }, '127.0.0.1/8')
export const OUTER = nic({ index: 7, name: 'box0', peer: 2, peerNamespace: 3 }, '10.98.0.1/24')
export const INNER = nic({}, '10.98.0.2/24', 'fd00::2/64', 'fe80::1/64')
export const ROUTE = { to: 'default', via: '10.98.0.1', nic: 'eth0' }
export const WAN = { to: 'default', via: '192.0.2.53', nic: 'wan0' }
export const ABLE: Abilities = { noEbpf: undefined, isIntercepted: false }
export const HOST: Network = { nics: [LO, OUTER], routes: [WAN] }
export const PLAIN = resolvers('/etc/resolv.conf', '9.9.9.9')
export const STUB = resolvers('/etc/resolv.conf', '127.0.0.53')
export const BEHIND_STUB = resolvers('/run/systemd/resolve/resolv.conf', '192.0.2.53')

/** What planInterface needs of a workload behind the interface box0. */
export const BEHIND = {
  name: 'box0',
  interface: 'box0',
  host: HOST,
  abilities: ABLE,
  addresses: [],
  otherEnd: [],
  files: [PLAIN],
  upstreams: [],
}

/** A plan in one line: mode, datapath, where the daemon runs, endpoints, servers. */
export function wordsOf({ mode, datapath, namespace, endpoints, servers }: UpPlan): string {
  const items = endpoints.value.map(({ name, addresses, interface: at, cgroup }) =>
    [name, at === undefined ? cgroup : `${at.name}/${at.hook}`, ...addresses].join(' '),
  )
  const asked = servers.value.map(formatSocketAddress).join(' ')
  return `${mode.value} ${datapath.value} ${namespace ?? 'here'}: ${items.join(', ')}: ${asked}`
}
