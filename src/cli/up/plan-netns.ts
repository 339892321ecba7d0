// Decides how `namegate up --netns` protects a network namespace. If each interface of the namespace is a veth whose other end is on this
// host, the daemon stays on this host, where no process of the namespace can change its rules. Otherwise the daemon runs inside the
// namespace. The functions have no side effects.

import { UnavailableError } from '../../core/errors.ts'
import type { SocketAddress } from '../../core/socket-address.ts'
import { formatSocketAddress } from '../../core/socket-address.ts'
import type { NamedNamespace, Network, Nic } from './network.ts'
import {
  chooseServers,
  datapathOnHost,
  globalAddresses,
  isLocal,
  UNSEEN,
  type Abilities,
  type Resolvers,
  type UpEndpoint,
  type UpPlan,
} from './plan.ts'

export interface NetnsFacts {
  /** The name as it was given, for messages. */
  readonly given: string
  /** The name of the workload. */
  readonly name: string
  readonly path: string
  /** The namespace as `ip netns` lists it. Undefined if it has no name there. */
  readonly named: NamedNamespace | undefined
  readonly host: Network
  readonly inner: Network
  readonly abilities: Abilities
  /** The servers that the workload asks. */
  readonly asked: Resolvers
  /** Files that can name servers for the daemon, the best first. */
  readonly files: readonly Resolvers[]
  readonly upstreams: readonly SocketAddress[]
}

/** Throws UnavailableError if the namespace has no way out, or if no server can be asked. */
export function planNetns(facts: NetnsFacts): UpPlan {
  const { name, path, abilities, asked, files, upstreams } = facts
  const nics = usedNics(facts)
  mustHaveRoute(facts, nics)
  const why = whyInside(facts, nics)
  const servers = chooseServers(upstreams, [asked, ...files], false)
  const shared = { name, servers }
  if (why !== undefined) {
    return {
      ...shared,
      namespace: path,
      mode: { value: 'redirect', why: `the daemon runs inside the namespace, because ${why}` },
      datapath: { value: 'nftables', why: 'its rules end with the namespace' },
      endpoints: {
        value: nics.map((nic, i) => innerEndpoint(name, nic, i)),
        why: `interfaces of the namespace: ${nics.map((nic) => nic.name).join(', ')}`,
      },
      warnings: [weaker(why), UNSEEN],
      outer: nics.flatMap((nic) => otherEnd(facts, nic)?.name ?? []),
    }
  }
  const ends = nics.flatMap((nic) => {
    const outer = otherEnd(facts, nic)
    return outer === undefined ? [] : [{ nic, outer }]
  })
  const pairs = ends.map(({ nic, outer }) => `${nic.name} leads to ${outer.name}`)
  return {
    ...shared,
    namespace: undefined,
    mode: {
      value: 'tproxy',
      why: `the queries of the namespace pass this host: ${pairs.join(', ')}`,
    },
    datapath: datapathOnHost(abilities),
    endpoints: {
      value: ends.map(({ nic, outer }, i) => outerEndpoint(name, nic, outer, i)),
      why: `the other ends of the namespace's interfaces: ${pairs.join(', ')}`,
    },
    warnings: [],
  }
}

function weaker(why: string): string {
  return `the rules are inside the namespace, because ${why}: a process of the workload with CAP_NET_ADMIN, such as root, can remove them`
}

/** The interfaces through which the namespace sends. */
function usedNics({ given, inner }: NetnsFacts): readonly Nic[] {
  const others = inner.nics.filter(({ name }) => name !== 'lo')
  const used = others.filter((nic) => nic.isUp && globalAddresses(nic).length > 0)
  if (used.length > 0) return used
  const [down] = others
  if (down === undefined) {
    throw new UnavailableError(
      `Namespace ${given} has no interface besides lo, so nothing in it can send\n` +
        `  Connect it first, for example: ip link add up0 type veth peer name eth0 netns ${given}\n` +
        `  Then give both ends addresses, set them up, and add a default route (README.md, "Protect your own workload").`,
    )
  }
  const what = down.isUp ? 'no address' : 'an interface that is down'
  const inside = inNamespace(given)
  const remedy = down.isUp
    ? `${inside} addr add ADDRESS/24 dev ${down.name}`
    : `${inside} link set ${down.name} up`
  throw new UnavailableError(`Namespace ${given} has ${what} (${down.name}): ${remedy}`)
}

function mustHaveRoute(facts: NetnsFacts, nics: readonly Nic[]): void {
  const { given, inner } = facts
  if (inner.routes.some(({ to, via }) => to === 'default' || via !== undefined)) return
  const outer = nics.map((nic) => otherEnd(facts, nic)).find((each) => each !== undefined)
  const gateway = outer === undefined ? undefined : globalAddresses(outer)[0]?.address
  const family = gateway?.includes(':') === true ? ' -6' : ''
  throw new UnavailableError(
    `Namespace ${given} has no route to other networks: ` +
      `${inNamespace(given)}${family} route add default via ${gateway ?? 'ADDRESS'}`,
  )
}

/** The beginning of a command of ip(8) inside a namespace. */
function inNamespace(given: string): string {
  return given.includes('/') ? `nsenter --net=${given} ip` : `ip -n ${given}`
}

/** Returns why the daemon must run inside the namespace. Undefined if it can stay on this host. */
function whyInside(facts: NetnsFacts, nics: readonly Nic[]): string | undefined {
  const { abilities, asked } = facts
  const apart = nics.find((nic) => otherEnd(facts, nic) === undefined)
  if (facts.named?.number === undefined && apart?.kind === 'veth') {
    return `this host does not know where its interface ${apart.name} leads, because the namespace has no name here ('ip netns attach NAME PID' gives it one)`
  }
  if (apart !== undefined) {
    const kind = apart.kind === '' ? '' : ` (${apart.kind})`
    return `the other end of its interface ${apart.name}${kind} is not on this host`
  }
  const local = asked.servers.filter(isLocal)
  if (local.length > 0 || asked.servers.length === 0) {
    const which =
      local.length === 0
        ? 'no server, so programs ask 127.0.0.1'
        : local.map(formatSocketAddress).join(', ')
    return `its programs ask a server on loopback: ${asked.file} names ${which}`
  }
  if (abilities.isIntercepted) return 'another daemon already intercepts queries on this host'
  const port = nics.map((nic) => otherEnd(facts, nic)).find((each) => each?.master !== undefined)
  if (abilities.noEbpf === undefined || port === undefined) return undefined
  return `${port.name} is a port of ${port.master}, which needs eBPF: ${abilities.noEbpf}`
}

/** The end of a veth on this host. Undefined if the interface is of another kind, or its other end is elsewhere. */
function otherEnd({ named, host }: NetnsFacts, { kind, peer, index }: Nic): Nic | undefined {
  if (kind !== 'veth' || named?.number === undefined) return undefined
  return host.nics.find(
    (each) =>
      each.kind === 'veth' &&
      each.index === peer &&
      each.peer === index &&
      each.peerNamespace === named.number,
  )
}

function nameOf(name: string, { name: nic }: Nic, i: number): string {
  return i === 0 ? name : `${name}-${nic}`
}

function addressesOf(nic: Nic): readonly string[] {
  return globalAddresses(nic).map(({ address }) => address)
}

function outerEndpoint(name: string, nic: Nic, outer: Nic, i: number): UpEndpoint {
  return {
    name: nameOf(name, nic, i),
    addresses: addressesOf(nic),
    interface: { name: outer.name, hook: 'ingress' },
  }
}

/** Inside the namespace, queries to a server on loopback have a source on loopback. */
function innerEndpoint(name: string, nic: Nic, i: number): UpEndpoint {
  const loopback = i === 0 ? ['127.0.0.0/8', '::1'] : []
  return {
    name: nameOf(name, nic, i),
    addresses: [...addressesOf(nic), ...loopback],
    interface: { name: nic.name, hook: 'egress' },
  }
}
