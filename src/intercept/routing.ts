// This file defines the routing that TPROXY needs. A packet with the mark that arrives from outside is delivered to this host,
// whatever its address. Each family has three rules and one route. Their protocol number marks them as namegate's, so `down`
// finds them without the config that made them. The functions are pure: commands are arguments of ip(8), and answers are texts of
// `ip -j`.
//
// - rule 53: packets with the mark that this host sends (`iif lo`, also reverse-path lookups) continue at rule 55
// - rule 54: packets with the mark use table T, whose only route delivers to this host
// - rule 55: does nothing
//
// Without rule 53, namegate's own marked packets would return to this host instead of going to their server.

import type { Family } from '../core/ip.ts'
import { hex } from './nft-text.ts'
import type { InterceptPlan } from './plan.ts'
import { fieldOf } from './targets.ts'

/** The first preference after `local`, before the rules of other programs. */
const FIRST = 53
export const LAST = FIRST + 2
/** The protocol number of rules and routes (rtnetlink(7) `rtm_protocol`), from the range reserved for administrators. */
export const PROTOCOL = '78'

export type IpArguments = readonly string[]

/** A rule or route of namegate, with the commands that make it and remove it. */
export interface RoutingStep {
  readonly add: IpArguments
  readonly remove: IpArguments
}

/** The steps in the order in which they are made. Empty without TPROXY. */
export function routingSteps(plan: InterceptPlan): readonly RoutingStep[] {
  return tproxyFamilies(plan).flatMap((family) => stepsOf(family, plan.mark, plan.table))
}

/** The families for which some TPROXY part has a listener. */
export function tproxyFamilies({ tproxy }: InterceptPlan): readonly Family[] {
  return ([4, 6] as const).filter((family) =>
    tproxy.some(({ targets }) => targets[family] !== undefined),
  )
}

function stepsOf(family: Family, mark: number, table: number): readonly RoutingStep[] {
  const rule = { mark: undefined, table: undefined, goto: undefined }
  return [
    routeStep(family, String(table)),
    ruleStep(family, { ...rule, priority: LAST }),
    ruleStep(family, { ...rule, priority: FIRST, mark, goto: LAST }),
    ruleStep(family, { ...rule, priority: FIRST + 1, mark, table: String(table) }),
  ]
}

function routeStep(family: Family, table: string): RoutingStep {
  return step(family, 'route', ['local', 'default', 'dev', 'lo', 'table', table])
}

function ruleStep(
  family: Family,
  { priority, mark, table, goto }: Pick<FoundRule, 'priority' | 'mark' | 'table' | 'goto'>,
): RoutingStep {
  return step(family, 'rule', [
    ...['pref', String(priority)],
    ...(goto === undefined ? [] : ['iif', 'lo']),
    ...(mark === undefined ? [] : ['fwmark', hex(mark)]),
    ...(goto === undefined ? [] : ['goto', String(goto)]),
    ...(table === undefined ? [] : ['lookup', table]),
    ...(goto === undefined && table === undefined ? ['nop'] : []),
  ])
}

function step(family: Family, object: 'rule' | 'route', words: readonly string[]): RoutingStep {
  const rest = [...words, 'protocol', PROTOCOL]
  return {
    add: [`-${family}`, object, 'add', ...rest],
    remove: [`-${family}`, object, 'del', ...rest],
  }
}

/** A rule of `ip -j rule`, with the fields that this file needs. */
export interface FoundRule {
  readonly priority: number
  readonly isOurs: boolean
  readonly mark: number | undefined
  readonly mask: number
  readonly iif: string | undefined
  readonly table: string | undefined
  readonly goto: number | undefined
  /** A text for people, such as `10: from all lookup 200`. */
  readonly text: string
}

export function parseRules(json: string): readonly FoundRule[] {
  const parsed: unknown = JSON.parse(json === '' ? '[]' : json)
  return Array.isArray(parsed) ? parsed.map(toRule) : []
}

function toRule(item: unknown): FoundRule {
  const text = (key: string): string | undefined => {
    const value = fieldOf(item, key)
    return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
  }
  const words = ['iif', 'oif', 'fwmark', 'fwmask'].flatMap((key) => {
    const value = text(key)
    return value === undefined ? [] : [`${key} ${value}`]
  })
  const table = text('table')
  const priority = Number(text('priority') ?? 0)
  const source = [text('src') ?? 'all', text('srclen')].filter((each) => each !== undefined)
  const mark = text('fwmark')
  const goto = text('goto')
  return {
    priority,
    isOurs: text('protocol') === PROTOCOL && priority >= FIRST && priority <= LAST,
    mark: mark === undefined ? undefined : Number(mark),
    mask: Number(text('fwmask') ?? 0xffff_ffff),
    iif: text('iif'),
    table,
    goto: goto === undefined ? undefined : Number(goto),
    text: [`${priority}: from ${source.join('/')}`, ...words]
      .concat(table === undefined ? [] : [`lookup ${table}`])
      .join(' '),
  }
}

/** namegate's steps that are in the kernel, of any config. Reads `ip -j rule` and `ip -j route show table all proto 78`. */
export function foundSteps(
  family: Family,
  rules: readonly FoundRule[],
  routes: string,
): readonly RoutingStep[] {
  const ours = rules.filter(({ isOurs }) => isOurs).toSorted(byOrderOfMaking)
  return [
    ...tablesOf(routes).map((table) => routeStep(family, table)),
    ...ours.map((rule) => ruleStep(family, rule)),
  ]
}

/** Sorts the target of a jump first, and the jump before the rule that it jumps over. */
function byOrderOfMaking(a: FoundRule, b: FoundRule): number {
  const order = ({ priority }: FoundRule): number => (priority === LAST ? 0 : priority)
  return order(a) - order(b)
}

/** The tables with namegate's route. `routes` lists only this protocol, so ip leaves the protocol out. */
function tablesOf(routes: string): readonly string[] {
  const parsed: unknown = JSON.parse(routes.trim() === '' ? '[]' : routes)
  const list: readonly unknown[] = Array.isArray(parsed) ? parsed : []
  return list
    .filter((item) => fieldOf(item, 'type') === 'local' && fieldOf(item, 'dev') === 'lo')
    .map((item) => String(fieldOf(item, 'table')))
}

/** Returns a route of another program in the output of `ip -j route show table T`, or undefined. */
export function foreignRoute(routes: string): string | undefined {
  const parsed: unknown = JSON.parse(routes.trim() === '' ? '[]' : routes)
  const list: readonly unknown[] = Array.isArray(parsed) ? parsed : []
  const found = list.find((item) => String(fieldOf(item, 'protocol')) !== PROTOCOL)
  if (found === undefined) return undefined
  return `${String(fieldOf(found, 'dst'))} dev ${String(fieldOf(found, 'dev'))}`
}

/** Returns why a rule of another program is in the way, or undefined if none is. */
export function ruleInTheWay(
  rules: readonly FoundRule[],
  { mark, table }: Pick<InterceptPlan, 'mark' | 'table'>,
): string | undefined {
  for (const rule of rules) {
    if (rule.isOurs) continue
    const coversMark = rule.mark !== undefined && ((mark ^ rule.mark) & rule.mask) >>> 0 === 0
    if (rule.table === String(table)) {
      return `ip rule "${rule.text}" uses routing table ${table}: give intercept.table a free number`
    }
    if (rule.mark !== undefined && coversMark) {
      return `ip rule "${rule.text}" takes packets with mark ${hex(mark)}: give intercept.mark a free value`
    }
    const isEarly = rule.priority <= LAST && rule.table !== 'local'
    if (isEarly && rule.mark === undefined && rule.iif !== 'lo') {
      return `ip rule "${rule.text}" comes before ours: move it behind ${LAST}`
    }
  }
  return undefined
}
