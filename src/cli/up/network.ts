// Reads the interfaces and routes of a network namespace with ip(8), and the name servers of its workloads. A namespace other than the own
// one is entered by a child process (nsenter), so this process stays where it is.

import { release } from 'node:os'
import { UnavailableError } from '../../core/errors.ts'
import { parseAddress, type Family } from '../../core/ip.ts'
import { fieldOf } from '../../intercept/targets.ts'
import { listOf } from '../fields.ts'
import { toolError, type RunTool, type ToolResult } from '../../intercept/tools.ts'

/** An address of an interface. */
export interface NicAddress {
  readonly family: Family
  readonly address: string
  /** Length of the prefix in bits. */
  readonly length: number
  readonly isLinkLocal: boolean
}

/** A network interface. */
export interface Nic {
  readonly index: number
  readonly name: string
  /** `veth`, `bridge`, `macvlan` and so on. Empty for a device without a kind, such as a network card. */
  readonly kind: string
  /** Index of the other end of a veth, in the namespace of that end. 0 if unknown. */
  readonly peer: number
  /** Number of the namespace of the other end, as this namespace counts them. Undefined if it is in this namespace. */
  readonly peerNamespace: number | undefined
  readonly isUp: boolean
  /** The bridge, bond or switch that the interface is a part of. */
  readonly master: string | undefined
  readonly addresses: readonly NicAddress[]
}

export interface Route {
  /** `default`, an address or a prefix. */
  readonly to: string
  readonly via: string | undefined
  readonly nic: string
}

/** The network of one namespace. */
export interface Network {
  readonly nics: readonly Nic[]
  readonly routes: readonly Route[]
}

/** A network namespace with a name, as `ip netns` lists them. `number` is undefined as long as the kernel has given no number. */
export interface NamedNamespace {
  readonly name: string
  readonly number: number | undefined
}

/** Reads a network. `namespace`: path of the namespace; undefined for the own one. Throws UnavailableError if ip(8) fails. */
export async function readNetwork(run: RunTool, namespace?: string): Promise<Network> {
  const [nics, routes4, routes6] = await Promise.all([
    readJson(run, namespace, ['-d', 'address', 'show']),
    readJson(run, namespace, ['-4', 'route', 'show']),
    // Without IPv6 in the kernel, ip(8) fails. Then there are no such routes.
    readJson(run, namespace, ['-6', 'route', 'show']).catch((): readonly unknown[] => []),
  ])
  return { nics: nics.flatMap(toNic), routes: [...routes4, ...routes6].flatMap(toRoute) }
}

/** Lists the named network namespaces. */
export async function readNamespaces(run: RunTool): Promise<readonly NamedNamespace[]> {
  const rows = await readJson(run, undefined, ['netns', 'list'])
  return rows.flatMap((row) => {
    const [name, number] = [fieldOf(row, 'name'), fieldOf(row, 'id')]
    return typeof name === 'string'
      ? [{ name, number: typeof number === 'number' ? number : undefined }]
      : []
  })
}

/** Returns the ports that UDP and TCP sockets of a namespace use. */
export async function readPorts(run: RunTool, namespace?: string): Promise<ReadonlySet<number>> {
  const files = ['udp', 'udp6', 'tcp', 'tcp6'].map((each) => `/proc/net/${each}`)
  const script = `cat ${files.join(' ')} 2>/dev/null; true`
  const { stdout } = await runIn(run, namespace, ['sh', '-c', script])
  const found = stdout.matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) /gm)
  return new Set([...found].map(([, hex = '0']) => Number.parseInt(hex, 16)))
}

/** True if nftables has the table `inet NAME` in the namespace. */
export async function hasTable(
  run: RunTool,
  namespace: string | undefined,
  name: string,
): Promise<boolean> {
  const command = ['nft', '-t', 'list', 'table', 'inet', name]
  return (await runIn(run, namespace, command)).code === 0
}

/** Runs a program in a namespace. */
export async function runIn(
  run: RunTool,
  namespace: string | undefined,
  [program = '', ...args]: readonly string[],
): Promise<ToolResult> {
  const words = namespace === undefined ? [] : ['nsenter', `--net=${namespace}`]
  return await run('sh', ['-c', 'exec "$@"', 'sh', ...words, program, ...args])
}

async function readJson(
  run: RunTool,
  namespace: string | undefined,
  args: readonly string[],
): Promise<readonly unknown[]> {
  const result = await runIn(run, namespace, ['ip', '-j', ...args])
  if (result.code !== 0) throw ipError(args, result)
  const parsed: unknown = JSON.parse(result.stdout.trim() === '' ? '[]' : result.stdout)
  return listOf(parsed)
}

function ipError(args: readonly string[], result: ToolResult): UnavailableError {
  const missing = /(ip|nsenter): not found/.exec(result.stderr)?.[1]
  if (missing === undefined) return toolError('ip', args, result)
  const debian = missing === 'ip' ? 'iproute2' : 'util-linux'
  return new UnavailableError(
    `Cannot run ${missing}: it is not installed: apt-get install ${debian}`,
  )
}

function toNic(row: unknown): readonly Nic[] {
  const [index, name] = [fieldOf(row, 'ifindex'), fieldOf(row, 'ifname')]
  if (typeof index !== 'number' || typeof name !== 'string') return []
  const [kind, peer, peerNamespace, flags, master] = [
    fieldOf(fieldOf(row, 'linkinfo'), 'info_kind'),
    fieldOf(row, 'link_index'),
    fieldOf(row, 'link_netnsid'),
    fieldOf(row, 'flags'),
    fieldOf(row, 'master'),
  ]
  const infos: unknown = fieldOf(row, 'addr_info')
  return [
    {
      index,
      name,
      kind: typeof kind === 'string' ? kind : '',
      peer: typeof peer === 'number' ? peer : 0,
      peerNamespace: typeof peerNamespace === 'number' ? peerNamespace : undefined,
      isUp: Array.isArray(flags) && flags.includes('UP'),
      master: typeof master === 'string' ? master : undefined,
      addresses: Array.isArray(infos) ? infos.flatMap(toAddress) : [],
    },
  ]
}

function toAddress(info: unknown): readonly NicAddress[] {
  const [address, length] = [fieldOf(info, 'local'), fieldOf(info, 'prefixlen')]
  if (typeof address !== 'string' || typeof length !== 'number') return []
  const family = parseAddress(address)?.family
  if (family === undefined) return []
  return [{ family, address, length, isLinkLocal: fieldOf(info, 'scope') === 'link' }]
}

function toRoute(row: unknown): readonly Route[] {
  const [to, via, nic] = [fieldOf(row, 'dst'), fieldOf(row, 'gateway'), fieldOf(row, 'dev')]
  if (typeof to !== 'string' || typeof nic !== 'string') return []
  return [{ to, via: typeof via === 'string' ? via : undefined, nic }]
}

/** The kernel's version as two numbers, such as 6.1. */
export function kernelVersion(text = release()): readonly [major: number, minor: number] {
  const [, major = '0', minor = '0'] = /^(\d+)\.(\d+)/.exec(text) ?? []
  return [Number(major), Number(minor)]
}
