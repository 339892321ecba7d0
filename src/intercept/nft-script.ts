// This file renders a plan as nftables text. The text is one script and so one transaction. It replaces namegate's own two tables
// and changes no other table. Table `inet` takes the queries. Table `bridge` stops DNS between two ports of a bridge, which would
// bypass `inet`. The functions are pure: the same plan and targets give the same text.
//
// TPROXY runs at priority raw, before connection tracking, with `notrack`. Otherwise another table that rewrites a service
// address (kube-proxy) would change it under an open TCP connection. A drop follows every tproxy rule, because a tproxy
// rule does not match without a listening socket. Answers leave untracked too, so that no masquerade changes the address that the
// client asked.
//
// With br_netfilter, a packet of a bridge port passes prerouting as a frame of the bridge. It loses its socket when it reaches
// the router, which skips the usual rules. There the chain `rerouted` takes the packet again, before all other chains. This chain
// must be installed after the first bridge was made, so it is installed again when a bridge appears.
// nft-redirect.ts has the rules of REDIRECT.

import type { CgroupLevel } from './cgroups.ts'
import { cgroupSetName, redirectLines, type RedirectOptions } from './nft-redirect.ts'
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
import type { InterceptPlan, TproxyPart } from './plan.ts'
import type { PartNames } from './targets.ts'

export const TABLE = 'namegate_intercept'
/** The comments of this chain say which plan is in force. No packet enters it. */
export const ABOUT_CHAIN = 'about'
/**
 * The comments of this chain hold the digests of the other chains (rule-digests.ts). Its name cannot change, because rules
 * outlive the program.
 */
export const DIGESTS_CHAIN = 'seals'

/** The chain for packets that come from a bridge to the router. */
const REROUTED = 'rerouted'
/** Runs before br_netfilter, which skips the chains after it. */
const FIRST_OF_ALL = -(2 ** 31)

export interface NftOptions extends RedirectOptions {
  readonly plan: InterceptPlan
  readonly names: readonly PartNames[]
  /** The text for the about chain. */
  readonly about: string
  /** If false, the datapath handles DNS between ports of one bridge. */
  readonly withBridge: boolean
}

/** The script that replaces all of namegate's rules with the rules of the plan. */
export function installScript(options: NftOptions): string {
  const { plan, withBridge } = options
  const hasTproxy = plan.tproxy.length > 0
  return [
    ...replaced('inet'),
    ...(withBridge && hasTproxy ? replaced('bridge') : []),
    ...table('inet', [
      ...chain(ABOUT_CHAIN, undefined, [`return comment "${options.about}"`]),
      ...(hasTproxy ? tproxyLines(options) : []),
      ...(plan.redirect === undefined ? [] : redirectLines(plan, plan.redirect, options)),
    ]),
    ...(withBridge && hasTproxy ? table('bridge', bridgeLines(options)) : []),
    '',
  ].join('\n')
}

/**
 * The script that removes namegate's tables of these `families`. The caller names the families because nft cannot delete "if it
 * exists".
 */
export function removeScript(families: readonly ('inet' | 'bridge')[]): string {
  return families.map((family) => `delete table ${family} ${TABLE}\n`).join('')
}

/** The script that removes all rules of namegate's tables of these `families`, and keeps the chains. */
export function emptyScript(families: readonly ('inet' | 'bridge')[]): string {
  return families.map((family) => `flush table ${family} ${TABLE}\n`).join('')
}

/** True if bridges appeared or disappeared. Then the whole script must be installed again. */
export function bridgesChanged(
  names: readonly PartNames[],
  sets: ReadonlyMap<string, readonly string[]>,
): boolean {
  return names.some(
    ({ bridges }, i) => sets.get(`inet ${bridgeSetName(i)}`)?.join() !== bridges.join(),
  )
}

/** True if cgroups are at other levels than before. Then the whole script must be installed again. */
export function levelsChanged(
  cgroups: readonly CgroupLevel[],
  sets: ReadonlyMap<string, readonly string[]>,
): boolean {
  const found = [...sets.keys()].filter((key) => key.startsWith('inet cgroups'))
  const wanted = cgroups.map(({ level }) => `inet ${cgroupSetName(level)}`)
  return found.toSorted().join() !== wanted.toSorted().join()
}

/** The script that updates the interfaces and cgroups of a plan in force. It is '' if `sets`, by family and name, are up to date. */
export function updateScript(
  { names, cgroups }: Pick<NftOptions, 'names' | 'cgroups'>,
  sets: ReadonlyMap<string, readonly string[]>,
): string {
  const wanted = names.flatMap(({ routed, ports }, i) => [
    [`inet ${setName(i)}`, routed] as const,
    [`bridge ${setName(i)}`, ports] as const,
  ])
  const levels = cgroups.map(({ level, paths }) => [`inet ${cgroupSetName(level)}`, paths] as const)
  return [...wanted, ...levels]
    .filter(([key, list]) => sets.has(key) && sets.get(key)?.join() !== list.join())
    .map(([key, list]) => refilled(key.replace(' ', ` ${TABLE} `), list))
    .join('')
}

function refilled(set: string, names: readonly string[]): string {
  const fill = names.length === 0 ? '' : `add element ${set} { ${quoted(names)} }\n`
  return `flush set ${set}\n${fill}`
}

function replaced(family: string): readonly string[] {
  return [`add table ${family} ${TABLE}`, `delete table ${family} ${TABLE}`]
}

function table(family: string, lines: readonly string[]): readonly string[] {
  return [`table ${family} ${TABLE} {`, ...lines.map((line) => `  ${line}`), '}']
}

function tproxyLines({ plan, names }: NftOptions): readonly string[] {
  return [
    ...counters('taken', 'forged', 'unheard'),
    ...plan.tproxy.flatMap((_, i) => [
      ...nameSet(setName(i), names[i]?.routed ?? []),
      ...nameSet(bridgeSetName(i), names[i]?.bridges ?? []),
    ]),
    ...chain('queries', 'filter hook prerouting priority raw', [
      ...NOT_DNS,
      'iifname "lo" accept',
      ...plan.tproxy.flatMap((part, i) => forInterfaces(part, i, 'iifname', `goto take${i}`)),
    ]),
    ...chain(REROUTED, `filter hook prerouting priority ${FIRST_OF_ALL}`, [
      ...NOT_DNS,
      // Fragments were reassembled in the first pass.
      'ip frag-off & 0x3fff != 0 accept',
      'exthdr frag exists accept',
      ...plan.tproxy.map((_, i) => `iifname @${bridgeSetName(i)} goto take${i}`),
    ]),
    ...plan.tproxy.flatMap((part, i) => chain(`take${i}`, undefined, takeRules(part, plan.mark))),
    ...chain('answers', 'filter hook output priority raw', [
      'meta l4proto != { tcp, udp } accept',
      'th sport != 53 accept',
      'oifname "lo" accept',
      ...plan.tproxy.flatMap((part, i) => forInterfaces(part, i, 'oifname', 'notrack')),
    ]),
  ]
}

/** A strict reverse-path check comes first, because a query's source address names its endpoint. */
function takeRules({ targets }: TproxyPart, mark: number): readonly string[] {
  const rules = ['fib saddr . iif oif missing counter name "forged" drop', 'notrack']
  for (const family of [4, 6] as const) {
    const target = targets[family]
    if (target === undefined) continue
    for (const protocol of ['udp', 'tcp']) {
      const match = `meta nfproto ${NFPROTO[family]} meta l4proto ${protocol}`
      const take = `tproxy ${HEADER[family]} to ${socketOf(family, target)} meta mark set ${hex(mark)}`
      rules.push(`${match} ${take} counter name "taken" accept`)
      rules.push(`${match} counter name "unheard" drop`)
    }
  }
  return [...rules, 'counter name "unheard" drop']
}

function bridgeLines({ plan, names }: NftOptions): readonly string[] {
  return [
    ...counters('bridged'),
    ...plan.tproxy.flatMap((_, i) => nameSet(setName(i), names[i]?.ports ?? [])),
    ...chain('between', 'filter hook forward priority -200', [
      'meta protocol != { ip, ip6 } accept',
      ...NOT_DNS,
      ...plan.tproxy.flatMap((part, i) =>
        forInterfaces(part, i, 'iifname', 'counter name "bridged" drop'),
      ),
    ]),
  ]
}

function forInterfaces(part: TproxyPart, i: number, key: string, then: string): readonly string[] {
  const beginnings = part.beginnings.map((beginning) =>
    beginning === '' ? then : `${key} "${beginning}*" ${then}`,
  )
  return [`${key} @${setName(i)} ${then}`, ...beginnings]
}

function nameSet(name: string, names: readonly string[]): readonly string[] {
  return set(name, 'ifname', [], quoted(names))
}

function bridgeSetName(i: number): string {
  return `bridges${i}`
}

function setName(i: number): string {
  return `interfaces${i}`
}
