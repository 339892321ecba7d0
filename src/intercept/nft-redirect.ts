// This file renders the rules of REDIRECT for nft-script.ts. REDIRECT needs connection tracking. It runs before the usual nat (-100), so it decides first about a connection. The chain
// `guard` after it drops packets to port 53 that were neither redirected nor sent by namegate. It is needed because a packet that
// the kernel takes for an answer of another connection never enters a nat chain. At the first start the connections from before are such
// packets, so `guard` comes when the kernel has forgotten them (rules.ts).
//
// With `processes: cgroups`, REDIRECT takes only the queries of sockets of these cgroups. The chain `zone` gives their connections a zone of
// conntrack(8) of their own. Otherwise a query of another program from a port that such a process used would be taken for its connection,
// and be redirected too.

import type { Family } from '../core/ip.ts'
import type { CgroupLevel } from './cgroups.ts'
import {
  chain,
  counters,
  HEADER,
  hex,
  NFPROTO,
  NOT_DNS,
  quoted,
  set,
  socketOf,
} from './nft-text.ts'
import type { InterceptPlan, RedirectPart, Target } from './plan.ts'

/** The zone of conntrack(8) for the connections of cgroups. */
const ZONE = 20_039
/** nft(8) lists all elements of a set each time that the daemon looks at the rules, so the set is small. */
const CLOSING_MAX = 4096
const ADDRESS_TYPE = { 4: 'ipv4_addr', 6: 'ipv6_addr' } as const

export interface RedirectOptions {
  /** The cgroups whose queries are redirected, if the plan says so. */
  readonly cgroups: readonly CgroupLevel[]
  /** If false, DNS that is not redirected passes. */
  readonly withGuard?: boolean | undefined
}

export function redirectLines(
  plan: InterceptPlan,
  part: RedirectPart,
  { cgroups, withGuard = true }: RedirectOptions,
): readonly string[] {
  const own = ownRules(plan, part)
  const redirected = targetsOf(part).map(
    ([family, target]) => `${ofFamily(family)} ${toTarget(family, target)}`,
  )
  const inCgroups = cgroups.map(
    ({ level }) => `socket cgroupv2 level ${level} @${cgroupSetName(level)}`,
  )
  const whose = part.ofCgroups ? inCgroups.map((match) => `${match} `) : ['']
  return [
    ...counters('own', 'guarded'),
    ...([4, 6] as const).flatMap((family) => serverSet(family, part.exempt?.[family])),
    ...(part.ofCgroups ? zoneLines(part, cgroups, inCgroups) : []),
    ...chain('turn', 'nat hook output priority -110', [
      ...NOT_DNS,
      ...own.map((rule) => `${rule} counter name "own" accept`),
      ...(part.ofCgroups ? inCgroups.map((match) => `${match} goto redirected`) : redirected),
    ]),
    ...(part.ofCgroups ? chain('redirected', undefined, redirected) : []),
    ...(withGuard ? guardLines(plan, part, whose) : []),
  ]
}

/** `whose`: matches of the queries that are redirected. */
function guardLines(
  plan: InterceptPlan,
  part: RedirectPart,
  whose: readonly string[],
): readonly string[] {
  return chain('guard', 'filter hook output priority 50', [
    ...NOT_DNS,
    ...replyRules(plan, part),
    ...ownRules(plan, part).map((rule) => `${rule} accept`),
    // The last packets of namegate's own TCP connections have no user.
    ...ownRules(plan, part, 'tcp flags & (syn | ack) != syn').map((rule) => `${rule} accept`),
    ...whose.map((match) => `${match}counter name "guarded" drop`),
  ])
}

/** Puts queries of cgroups and the answers of the listeners into ZONE. */
function zoneLines(
  part: RedirectPart,
  cgroups: readonly CgroupLevel[],
  inCgroups: readonly string[],
): readonly string[] {
  const families = targetsOf(part).map(([family]) => family)
  return [
    ...cgroups.flatMap(({ level, paths }) =>
      set(cgroupSetName(level), 'cgroupsv2', [], quoted(paths)),
    ),
    ...families.flatMap(closingSet),
    ...chain('zone', 'filter hook output priority raw', [
      ...targetsOf(part).map(([family, { address = LOOPBACK[family], port }]) => {
        const from = `${HEADER[family]} saddr ${address} th sport ${port}`
        return `${ofFamily(family)} ${from} ct zone set ${ZONE} accept`
      }),
      ...NOT_DNS,
      ...inCgroups.map((match) => `${match} goto zoned`),
      // The last packet of a TCP connection has no user and no cgroup. It belongs to a cgroup if a socket of a cgroup has sent the FIN. The
      // last packets of other programs must not come into ZONE: conntrack would take them for a new connection, which has no redirect.
      'meta skuid 0-4294967295 accept',
      ...families.map(
        (family) =>
          `tcp flags & (syn | ack) == ack ${talkOf(family)} @closing${family} ct zone set ${ZONE}`,
      ),
    ]),
    ...chain('zoned', undefined, [
      `ct zone set ${ZONE}`,
      ...families.map(
        (family) => `tcp flags & fin == fin update @closing${family} { ${talkOf(family)} }`,
      ),
    ]),
  ]
}

/** The TCP connections that sockets of cgroups close. The client answers a FIN for one minute (TCP_TIMEWAIT_LEN of the kernel). */
function closingSet(family: Family): readonly string[] {
  const address = ADDRESS_TYPE[family]
  const more = [`size ${CLOSING_MAX}`, 'flags dynamic, timeout', 'timeout 1m']
  return set(`closing${family}`, `${address} . inet_service . ${address}`, more, '')
}

function talkOf(family: Family): string {
  return `${HEADER[family]} saddr . tcp sport . ${HEADER[family]} daddr`
}

function targetsOf({ targets }: RedirectPart): readonly (readonly [Family, Target])[] {
  return ([4, 6] as const).flatMap((family) => {
    const target = targets[family]
    return target === undefined ? [] : [[family, target] as const]
  })
}

function ofFamily(family: Family): string {
  return `meta nfproto ${NFPROTO[family]} meta l4proto { tcp, udp }`
}

/**
 * Packets that may go to port 53 for one of two reasons: they answer a client that asks from port 53, or they were redirected to
 * a listener at port 53.
 */
function replyRules({ tproxy }: InterceptPlan, { targets }: RedirectPart): readonly string[] {
  const isListener = targets[4]?.port === 53 || targets[6]?.port === 53
  return [
    ...(tproxy.length > 0 ? ['ct state untracked accept'] : []),
    isListener ? 'ct status dnat accept' : 'ct direction reply ct status dnat accept',
  ]
}

/** Matches what namegate sends itself. The mark alone is no proof, because any process with CAP_NET_RAW can set it. */
function ownRules(
  { mark }: InterceptPlan,
  { uid, exempt }: RedirectPart,
  instead?: string,
): readonly string[] {
  const who = `meta mark ${hex(mark)} ${instead ?? `meta skuid ${uid}`}`
  if (exempt === undefined) return [who]
  return ([4, 6] as const)
    .filter((family) => exempt[family].length > 0)
    .map((family) => `${who} ${HEADER[family]} daddr @servers${family}`)
}

function toTarget(family: Family, target: Target): string {
  if (target.address === undefined || target.address === LOOPBACK[family]) {
    return `redirect to :${target.port}`
  }
  return `dnat ${HEADER[family]} to ${socketOf(family, target)}`
}

/** The address to which `redirect` sends the packets of a process in this namespace. */
const LOOPBACK = { 4: '127.0.0.1', 6: '::1' } as const

export function cgroupSetName(level: number): string {
  return `cgroups${level}`
}

function serverSet(family: Family, servers: readonly string[] | undefined): readonly string[] {
  if (servers === undefined || servers.length === 0) return []
  return set(
    `servers${family}`,
    ADDRESS_TYPE[family],
    ['flags interval', 'auto-merge'],
    servers.join(', '),
  )
}
