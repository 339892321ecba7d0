// `readUpOptions` reads the options of `namegate up`. It checks all values before anything is looked up or started.

import { existsSync, readdirSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { foundNames } from '../../core/did-you-mean.ts'
import { parsePrefix } from '../../core/ip.ts'
import { parseServer, SERVER_FORM, type SocketAddress } from '../../core/socket-address.ts'
import { isAllowList, parseAllow } from '../../policy/allow-line.ts'
import type { ParsedArguments } from '../command.ts'
import { shellWord } from '../shell-word.ts'

/** The kernel has one entry for each interface here. */
const INTERFACES = '/sys/class/net'
const KINDS = ['netns', 'interface', 'cgroup'] as const

/** What `up` protects. `value` is as it was given. */
export interface UpTarget {
  readonly kind: (typeof KINDS)[number]
  readonly value: string
}

export interface UpOptions {
  readonly target: UpTarget
  /** The values of --allow, each of which parseAllow reads. */
  readonly allows: readonly string[]
  /** Absolute paths of allow-lists and policies. */
  readonly policies: readonly string[]
  readonly upstreams: readonly SocketAddress[]
  readonly addresses: readonly string[]
  readonly isAudited: boolean
  /** Absolute path. Undefined if the configuration is not kept. */
  readonly write: string | undefined
  readonly isForced: boolean
}

/** Returns the options, or the fault as text. */
export function readUpOptions({
  positionals,
  texts,
  lists,
  flags,
}: ParsedArguments): UpOptions | string {
  const [word] = positionals
  if (word !== undefined) return `up takes no argument, found ${JSON.stringify(word)}`
  const [target, ...others] = KINDS.flatMap((kind) => {
    const value = texts.get(kind)
    return value === undefined ? [] : [{ kind, value }]
  })
  if (target === undefined) {
    return "up needs --netns NAME, --interface IF or --cgroup PATH ('ip netns list' and 'ip link' show names)"
  }
  if (others.length > 0) return `--${target.kind} and --${others[0]?.kind}: give one of them`
  if (target.value === '') return `--${target.kind} needs a value`
  const given = {
    target,
    allows: lists.get('allow') ?? [],
    files: lists.get('allow-file') ?? [],
    policies: lists.get('policy') ?? [],
    addresses: lists.get('address') ?? [],
    isAudited: flags.has('audit'),
    write: texts.get('write'),
    isForced: flags.has('force'),
  }
  const upstreams = readUpstreams(lists.get('upstream') ?? [])
  if (typeof upstreams === 'string') return upstreams
  const fault = faultOf(given)
  if (fault !== undefined) return fault
  const { allows, files, policies, addresses, isAudited, write, isForced } = given
  return {
    target,
    allows,
    policies: [...files, ...policies].map((file) => resolve(file)),
    upstreams,
    addresses,
    isAudited,
    write: write === undefined ? undefined : resolve(write),
    isForced,
  }
}

interface Given {
  readonly target: UpTarget
  readonly allows: readonly string[]
  readonly files: readonly string[]
  readonly policies: readonly string[]
  readonly addresses: readonly string[]
  readonly isAudited: boolean
  readonly write: string | undefined
  readonly isForced: boolean
}

function faultOf(given: Given): string | undefined {
  const { target, allows, files, policies, addresses, isAudited, write, isForced } = given
  if (allows.length + files.length + policies.length === 0 && !isAudited) {
    if (isUnknownInterface(target)) {
      const found = foundNames(target.value, readdirSync(INTERFACES))
      return `--interface ${JSON.stringify(target.value)}: there is no such interface, ${found}`
    }
    return 'up needs --allow NAME, --allow-file FILE or --policy FILE, or --audit, which refuses nothing'
  }
  if (isForced && write === undefined) return '--force is only for --write'
  if (addresses.length > 0 && target.kind !== 'interface') {
    return '--address is only for --interface'
  }
  const noList = files.find((file) => !isAllowList(basename(file)))
  if (noList !== undefined && existsSync(`${noList}/.`)) {
    return `--allow-file ${JSON.stringify(noList)} is a folder: write --policy ${shellWord(noList)}, which reads its files`
  }
  if (noList !== undefined) {
    return `--allow-file ${JSON.stringify(noList)}: expected a name that ends in .allow (for other policies: --policy FILE)`
  }
  const noAddress = addresses.find((each) => parsePrefix(each).kind === 'bad')
  if (noAddress !== undefined) {
    return `--address ${JSON.stringify(noAddress)}: expected an address or prefix, such as 10.0.0.5 or fd00::/64`
  }
  for (const allow of allows) {
    const why = whyNoTarget(allow)
    if (why !== undefined) return `--allow ${JSON.stringify(allow)}${why}`
  }
  return undefined
}

function isUnknownInterface({ kind, value }: UpTarget): boolean {
  return kind === 'interface' && existsSync(INTERFACES) && !existsSync(join(INTERFACES, value))
}

function whyNoTarget(text: string): string | undefined {
  const result = parseAllow(text)
  return result.kind === 'ok' ? undefined : `, column ${result.column}: ${result.reason}`
}

function readUpstreams(texts: readonly string[]): readonly SocketAddress[] | string {
  const servers: SocketAddress[] = []
  for (const text of texts) {
    const server = parseServer(text)
    if (server === undefined) return `--upstream ${JSON.stringify(text)}: expected ${SERVER_FORM}`
    servers.push(server)
  }
  return servers
}
