// Decides how `namegate up --interface` protects the workloads behind an interface of this host, and how `--cgroup` protects processes of
// this host. The functions have no side effects.

import { foundNames } from '../../core/did-you-mean.ts'
import { UnavailableError } from '../../core/errors.ts'
import { formatPrefix, parseAddress, truncatePrefix } from '../../core/ip.ts'
import type { SocketAddress } from '../../core/socket-address.ts'
import type { NamedNamespace, Network, Nic } from './network.ts'
import {
  chooseServers,
  datapathOnHost,
  globalAddresses,
  UNSEEN,
  type Abilities,
  type Resolvers,
  type UpPlan,
} from './plan.ts'

export interface HostFacts {
  readonly name: string
  readonly host: Network
  readonly abilities: Abilities
  readonly files: readonly Resolvers[]
  readonly upstreams: readonly SocketAddress[]
}

export interface InterfaceFacts extends HostFacts {
  readonly interface: string
  /** Addresses of the workloads. If empty, they are found. */
  readonly addresses: readonly string[]
  /** The addresses of the other end of a veth, when that end is in a named network namespace. */
  readonly otherEnd: readonly string[]
}

/** Returns the other end's namespace of a veth of this host. Undefined if it has no name. */
export function namespaceBehind(
  nic: Nic | undefined,
  namespaces: readonly NamedNamespace[],
): NamedNamespace | undefined {
  if (nic?.kind !== 'veth' || nic.peerNamespace === undefined) return undefined
  return namespaces.find(({ number }) => number === nic.peerNamespace)
}

/** Throws UnavailableError if the interface does not exist, leads to the internet, or has workloads whose addresses are unknown. */
export function planInterface(facts: InterfaceFacts): UpPlan {
  const { name, host, abilities, files, upstreams } = facts
  const nic = findNic(facts)
  const { addresses, why } = addressesBehind(facts, nic)
  if (nic.master !== undefined && abilities.noEbpf !== undefined) {
    throw new UnavailableError(
      `Cannot protect ${nic.name}: it is a port of ${nic.master}, which needs eBPF: ${abilities.noEbpf}`,
    )
  }
  return {
    name,
    namespace: undefined,
    mode: { value: 'tproxy', why: `queries that arrive at ${nic.name} pass this host` },
    datapath: datapathOnHost(abilities),
    endpoints: {
      value: [{ name, addresses, interface: { name: nic.name, hook: 'ingress' } }],
      why,
    },
    servers: chooseServers(upstreams, files, true),
    warnings: unseenOnBridge(nic, host),
  }
}

/** Warns of a bridge with several ports. Its programs see packets that pass the bridge as an interface, and not those that stay on it. */
function unseenOnBridge({ name }: Nic, { nics }: Network): readonly string[] {
  const ports = nics.filter(({ master }) => master === name).map((port) => port.name)
  const [first = '', second] = ports
  if (second === undefined) return []
  return [
    `packets between the ports of ${name} (${ports.join(', ')}) do not pass ${name}, and stay open: to judge them, protect each workload's port, such as --interface ${first}`,
  ]
}

function findNic({ interface: name, host }: InterfaceFacts): Nic {
  const nic = host.nics.find((each) => each.name === name)
  const names = host.nics.map((each) => each.name).filter((each) => each !== 'lo')
  if (nic === undefined) {
    throw new UnavailableError(
      `No interface ${JSON.stringify(name)} on this host, ${foundNames(name, names)}\n` +
        '  For an interface inside a network namespace, give --netns instead.',
    )
  }
  if (!nic.isUp) {
    throw new UnavailableError(`Interface ${name} is down: ip link set ${name} up`)
  }
  const isWayOut = host.routes.some((route) => route.to === 'default' && route.nic === name)
  if (name === 'lo' || isWayOut) {
    const what = isWayOut ? 'leads to the internet' : 'has no workload behind it'
    throw new UnavailableError(
      `Interface ${name} ${what}\n  up protects workloads behind an interface, such as the host side of a veth ` +
        'or a bridge. For processes of this host, give --cgroup instead.',
    )
  }
  return nic
}

/** The workloads behind an interface: as given, the other end of the veth, the networks of the interface, or the routes to it. */
function addressesBehind(
  { addresses, otherEnd, host }: InterfaceFacts,
  nic: Nic,
): { readonly addresses: readonly string[]; readonly why: string } {
  if (addresses.length > 0) return { addresses, why: '--address names them' }
  if (otherEnd.length > 0) {
    return { addresses: otherEnd, why: `the addresses of the other end of ${nic.name}` }
  }
  const networks = globalAddresses(nic).flatMap(({ family, address, length }) =>
    length === (family === 4 ? 32 : 128) ? [] : [networkOf(address, length)],
  )
  const routed = host.routes
    .filter((route) => route.nic === nic.name && route.to !== 'default')
    .map((route) => route.to)
    .filter((to) => !/^fe[89ab]|^ff/i.test(to))
  const found = [...new Set([...networks, ...routed])]
  if (found.length > 0) {
    return { addresses: found, why: `the networks that this host reaches through ${nic.name}` }
  }
  throw new UnavailableError(
    `Cannot find the addresses of the workloads behind ${nic.name}: it has no address, and no route leads to it\n` +
      '  Give them, such as --address 10.0.0.5 --address fd00::/64.',
  )
}

/** Returns the network of an address. */
function networkOf(address: string, length: number): string {
  const parsed = parseAddress(address)
  return parsed === undefined ? address : formatPrefix(truncatePrefix(parsed, length))
}

export interface CgroupFacts extends HostFacts {
  /** The path inside the cgroup2 mount. */
  readonly cgroup: string
}

/** Throws UnavailableError without eBPF, or if no server outside of this host is known. */
export function planCgroup(facts: CgroupFacts): UpPlan {
  const { name, cgroup, abilities, files, upstreams } = facts
  if (abilities.noEbpf !== undefined) {
    throw new UnavailableError(
      `Cannot protect a cgroup: only the eBPF datapath can, and ${abilities.noEbpf}\n` +
        '  Put the processes into a network namespace, and give --netns.',
    )
  }
  return {
    name,
    namespace: undefined,
    mode: {
      value: 'redirect',
      why: 'a cgroup has no interface of its own, so the rules find its queries by the cgroup of the socket',
    },
    datapath: { value: 'ebpf', why: 'only eBPF can enforce policy for a cgroup' },
    endpoints: { value: [{ name, addresses: [], cgroup }], why: 'the given cgroup' },
    servers: chooseServers(upstreams, files, false),
    warnings: [UNSEEN],
  }
}
