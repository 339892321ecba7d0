// makePlan makes the plan of interception from the config. The renderers (nft-script.ts, iptables-text.ts, routing.ts) and
// rules.ts read the plan. A plan takes all DNS of its interfaces or of this network namespace. The rules drop DNS of a family
// that no listener covers. The functions are pure.

import type { Config, ListenerConfig } from '../config/config.ts'
import { InvalidInputError, UnavailableError, type Fault } from '../core/errors.ts'
import { formatAddress, formatPrefix, type Family, type Prefix } from '../core/ip.ts'

export const DNS_PORT = 53

export interface InterceptPlan {
  /** In the order of the config. If two parts name an interface, the first part takes it. */
  readonly tproxy: readonly TproxyPart[]
  readonly redirect: RedirectPart | undefined
  /** The mark of namegate's own packets, and of packets that TPROXY delivers to a listener. */
  readonly mark: number
  /** The routing table of TPROXY. */
  readonly table: number
  /** The families that some listener covers. */
  readonly families: readonly Family[]
  /** What the plan leaves out, as text for people. */
  readonly notes: readonly string[]
}

/** Where a listener receives. An undefined address means all addresses of the family. */
export interface Target {
  readonly address: string | undefined
  readonly port: number
}

export type Targets = { readonly [F in Family]?: Target }

/** DNS that arrives at these interfaces. */
export interface TproxyPart {
  readonly targets: Targets
  /** Interfaces that the config names. */
  readonly names: readonly string[]
  /** Beginnings of names. The config has `lxc*`, and this list has `lxc`. '' is every interface except lo. */
  readonly beginnings: readonly string[]
  /** True if the part also has the interfaces of endpoints, which appear and disappear. */
  readonly ofEndpoints: boolean
}

/** DNS that processes of this network namespace send. */
export interface RedirectPart {
  readonly targets: Targets
  /** True if the part has only the processes in cgroups of endpoints, which appear and disappear. */
  readonly ofCgroups: boolean
  /** The user of namegate. Its packets with the mark are not redirected if they go to `exempt`. */
  readonly uid: number
  /** Prefixes as text. Undefined means any server. */
  readonly exempt: { readonly [F in Family]: readonly string[] } | undefined
}

export interface PlanOptions {
  readonly config: Pick<Config, 'listeners' | 'intercept' | 'upstreams'>
  /** The servers that namegate asks, with `system` resolved. */
  readonly servers: readonly {
    readonly family: Family
    readonly address: string
    readonly port: number
  }[]
  /** The user that the daemon runs as. */
  readonly uid: number
  readonly hasIpv6: boolean
}

/**
 * Returns undefined if no listener has a transparent mode. Throws InvalidInputError, or UnavailableError if a listener needs IPv6
 * and the host has none.
 */
export function makePlan(options: PlanOptions): InterceptPlan | undefined {
  const { config, hasIpv6 } = options
  const listeners = config.listeners.filter(({ mode }) => mode !== 'explicit')
  if (listeners.length === 0) return undefined
  const faults = [...config.listeners.flatMap(faultsOf), ...dividedProcesses(config.listeners)]
  if (faults.length > 0) throw new InvalidInputError(faults)
  const tproxy = listeners
    .filter(({ mode }) => mode === 'tproxy')
    .map((listener) => toTproxy(listener, hasIpv6))
  const redirect = toRedirect(options)
  const all = [...tproxy, ...(redirect === undefined ? [] : [redirect])]
  const families = ([4, 6] as const).filter((family) =>
    all.some(({ targets }) => targets[family] !== undefined),
  )
  const notes = hasIpv6
    ? []
    : ['IPv6 is left out: it is off on this host (net.ipv6.conf.all.disable_ipv6)']
  const { mark, table } = config.intercept
  return { tproxy, redirect, mark, table, families, notes }
}

/** Returns true if a TPROXY listener receives the DNS that arrives at the interface of an endpoint. */
export function intercepts({ tproxy }: InterceptPlan, name: string): boolean {
  return tproxy.some(
    ({ names, beginnings, ofEndpoints }) =>
      ofEndpoints ||
      names.includes(name) ||
      beginnings.some((beginning) => name.startsWith(beginning)),
  )
}

function faultsOf(listener: ListenerConfig, i: number): readonly Fault[] {
  const { mode, port, interfaces, position } = listener
  const fault = (text: string): Fault => ({ position, message: `listeners[${i}]: ${text}` })
  const faults: Fault[] = []
  if (mode !== 'explicit' && port === 0) {
    faults.push(fault(`found port 0, expected a fixed one: rules of mode ${mode} name it`))
  }
  if (mode !== 'tproxy' && interfaces.length > 0) {
    faults.push(fault(`found interfaces, expected none: only mode tproxy has them, found ${mode}`))
  }
  if (mode !== 'redirect' && listener.processes === 'cgroups') {
    faults.push(fault(`found processes: cgroups, expected mode redirect, found mode ${mode}`))
  }
  for (const name of interfaces) {
    if (isInterfaceName(name.endsWith('*') ? name.slice(0, -1) || 'x' : name)) continue
    const found = JSON.stringify(name)
    faults.push(
      fault(
        `found interface ${found}, expected a name of 1 to 15 characters, or a beginning and *`,
      ),
    )
  }
  return faults
}

/** One chain redirects the queries of the network namespace, so its listeners agree about processes. */
function dividedProcesses(listeners: readonly ListenerConfig[]): readonly Fault[] {
  const [first, ...others] = listeners.filter(({ mode }) => mode === 'redirect')
  const other = others.find(({ processes }) => processes !== first?.processes)
  if (first === undefined || other === undefined) return []
  const message = `listeners: found processes: ${other.processes}, expected ${first.processes}, as the first listener of mode redirect has`
  return [{ position: other.position, message }]
}

function toTproxy(listener: ListenerConfig, hasIpv6: boolean): TproxyPart {
  const { interfaces } = listener
  return {
    targets: targetsOf(listener, hasIpv6),
    names: interfaces.filter((name) => !name.endsWith('*')),
    beginnings: interfaces.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1)),
    ofEndpoints: interfaces.length === 0,
  }
}

/** Several listeners can divide the families among them. For each family the first listener that covers it is used. */
function toRedirect({ config, servers, uid, hasIpv6 }: PlanOptions): RedirectPart | undefined {
  const listeners = config.listeners.filter(({ mode }) => mode === 'redirect')
  if (listeners.length === 0) return undefined
  const targets: { [F in Family]?: Target } = {}
  for (const listener of listeners) {
    const found = targetsOf(listener, hasIpv6)
    for (const family of [4, 6] as const) {
      const target = targets[family] ?? found[family]
      if (target !== undefined) targets[family] = target
    }
  }
  const ofCgroups = listeners.some(({ processes }) => processes === 'cgroups')
  return { targets, ofCgroups, uid, exempt: exemptOf(config.upstreams, servers) }
}

/** The servers that namegate can ask at port 53. Queries to other ports are never redirected. */
function exemptOf(
  upstreams: Config['upstreams'],
  servers: PlanOptions['servers'],
): RedirectPart['exempt'] {
  if (upstreams.originalDestination && upstreams.untrusted === 'pass') return undefined
  const trusted = upstreams.originalDestination ? upstreams.trusted : []
  const of = (family: Family): readonly string[] => {
    const asked = servers.filter((each) => each.family === family && each.port === DNS_PORT)
    const prefixes = trusted.filter((each) => each.family === family).map(formatPrefix)
    return [...new Set([...asked.map(({ address }) => address), ...prefixes])].toSorted()
  }
  return { 4: of(4), 6: of(6) }
}

function targetsOf({ address, port }: ListenerConfig, hasIpv6: boolean): Targets {
  const targets: { [F in Family]?: Target } = {}
  const text = addressText(address)
  if (address?.family !== 6 || text === undefined) {
    targets[4] = { address: address?.family === 4 ? text : undefined, port }
  }
  if (address?.family === 4) return targets
  if (hasIpv6) targets[6] = { address: text, port }
  else if (text !== undefined) {
    throw new UnavailableError(
      `Cannot intercept for a listener on ${text}: this host has no IPv6: ` +
        'turn it on (net.ipv6.conf.all.disable_ipv6=0) or leave the address out',
    )
  }
  return targets
}

/** Returns undefined for all addresses. `::` covers both families, as for listeners. */
function addressText(address: Prefix | undefined): string | undefined {
  if (address === undefined || address.octets.every((octet) => octet === 0)) return undefined
  return formatAddress(address.family, address.octets)
}

/**
 * True if a rule can contain the name. The kernel accepts such a name, and it has no character that nft or iptables would
 * interpret (quotes, backslashes, `*`, `+`, `!`).
 */
export function isInterfaceName(name: string): boolean {
  return /^[\w.@=%~^,-]{1,15}$/.test(name) && name !== '.' && name !== '..'
}
