// Defines what `namegate up` decides before it starts a daemon: how queries reach the daemon, what enforces policy, which workloads there
// are, and which servers the daemon asks. Each decision has its reason as text, which becomes a comment of the generated configuration.
// The functions have no side effects.

import { isLoopback } from '../../core/ip.ts'
import type { SocketAddress } from '../../core/socket-address.ts'
import { formatSocketAddress } from '../../core/socket-address.ts'
import { UnavailableError } from '../../core/errors.ts'
import type { Nic, NicAddress } from './network.ts'

/** A decision, and why it was taken. */
export interface Choice<Value> {
  readonly value: Value
  /** A sentence without its full stop. */
  readonly why: string
}

/** A workload as the endpoints file has it. */
export interface UpEndpoint {
  readonly name: string
  readonly addresses: readonly string[]
  /** `ingress`: the interface is on this host. `egress`: the interface is in the namespace of the workload. */
  readonly interface?: { readonly name: string; readonly hook: 'ingress' | 'egress' }
  readonly cgroup?: string
}

export interface UpPlan {
  /** The name of the workload. The label `app` of its endpoints has it too. */
  readonly name: string
  /** Path of the network namespace in which the daemon runs. Undefined for the namespace of this process. */
  readonly namespace: string | undefined
  readonly mode: Choice<'tproxy' | 'redirect'>
  readonly datapath: Choice<'ebpf' | 'nftables'>
  readonly endpoints: Choice<readonly UpEndpoint[]>
  readonly servers: Choice<readonly SocketAddress[]>
  readonly warnings: readonly string[]
  /** With the daemon inside the namespace: the interfaces of this host that lead to the workload, as far as they are known. */
  readonly outer?: readonly string[]
  /** What stands before and after a command that a person runs as the workload. Undefined if no command is known. */
  readonly inside?: readonly [before: string, after: string] | undefined
}

/** A warning where rules are inside the namespace or at the cgroup of the workload. Packet sockets send behind such rules. */
export const UNSEEN =
  'a process of the workload with CAP_NET_RAW can send past the rules by packet sockets (AF_PACKET): start it without this right, such as with setpriv --bounding-set -net_raw COMMAND'

/** What this host can do. */
export interface Abilities {
  /** Why the eBPF datapath cannot be used. Undefined if it can. */
  readonly noEbpf: string | undefined
  /** True if another daemon has its rules of interception in the network namespace of this host. */
  readonly isIntercepted: boolean
}

/** The name servers that a resolv.conf names. */
export interface Resolvers {
  readonly file: string
  readonly servers: readonly SocketAddress[]
}

/** Returns the datapath for packets that this host forwards, with the reason. */
export function datapathOnHost({ noEbpf }: Abilities): Choice<'ebpf' | 'nftables'> {
  return noEbpf === undefined
    ? { value: 'ebpf', why: 'eBPF programs at the interface drop what policy does not allow' }
    : { value: 'nftables', why: `eBPF cannot be used: ${noEbpf}` }
}

/** Servers that no packet leaves the namespace for. */
export function isLocal({ family, octets }: SocketAddress): boolean {
  return isLoopback(family, octets)
}

/**
 * Returns the servers that the daemon asks: `given` if there are any, else those of the first file that has one. With `mayBeLocal`, a
 * server on loopback counts. Throws UnavailableError if no server is left.
 */
export function chooseServers(
  given: readonly SocketAddress[],
  files: readonly Resolvers[],
  mayBeLocal: boolean,
): Choice<readonly SocketAddress[]> {
  if (given.length > 0) return { value: given, why: '--upstream names them' }
  const usable = files
    .map(({ file, servers }) => ({
      file,
      servers: servers.filter((each) => mayBeLocal || !isLocal(each)),
    }))
    .find(({ servers }) => servers.length > 0)
  if (usable !== undefined) return { value: usable.servers, why: `${usable.file} names them` }
  const found = files.flatMap(({ file, servers }) =>
    servers.map((each) => `${formatSocketAddress(each)} in ${file}`),
  )
  const named = found.length === 0 ? 'resolv.conf names none' : `found only ${found.join(', ')}`
  throw new UnavailableError(
    `Cannot find a DNS server that the daemon can ask: ${named}: give one, such as --upstream 9.9.9.9`,
  )
}

/** The addresses of an interface that identify a workload. Every interface can have the same link-local ones. */
export function globalAddresses({ addresses }: Nic): readonly NicAddress[] {
  return addresses.filter(({ isLinkLocal, address }) => !isLinkLocal && !/^fe[89ab]/i.test(address))
}

/** Turns any text into a name that endpoints, labels and files can have. */
export function toName(text: string): string {
  const name = text.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^[-_]+|[-_]+$/g, '')
  return name.slice(0, NAME_MAX) || 'workload'
}

/** The longest name. The path of the admin socket contains it. */
const NAME_MAX = 40

/** True if the plan protects processes in a cgroup. */
export function isOfCgroup({ endpoints }: Pick<UpPlan, 'endpoints'>): boolean {
  return endpoints.value.some(({ cgroup }) => cgroup !== undefined)
}

/** Returns `box`, or `box-2` and so on if an endpoint has that name. */
export function unusedName(name: string, used: ReadonlySet<string>): string {
  let found = name
  for (let i = 2; used.has(found); i++) found = `${name}-${i}`
  return found
}
