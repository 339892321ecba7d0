// This file reads `nft -j`. It finds namegate's parts that are in force, and rules of other programs that would take DNS before
// or after them. The functions are pure. They skip fields that are missing or have another form, so a newer nft causes no error.

import { ABOUT_CHAIN, TABLE } from './nft-script.ts'
import { COUNTERS, type Counter } from './nft-text.ts'
import { DNS_PORT, type InterceptPlan } from './plan.ts'
import { damageOf, partsOf, digestsOf, FOLLOWING, type Parts } from './rule-digests.ts'
import { fieldOf } from './targets.ts'

/** namegate's redirect must decide first about a connection's target. A chain at or before this priority would decide earlier. */
const REDIRECT_PRIORITY = -110

export interface InForce {
  /** The text of the about chain; '' if it has none. */
  readonly about: string
  /** Sets of interfaces and of cgroups by family and name, such as `inet interfaces0`. Sorted. */
  readonly sets: ReadonlyMap<string, readonly string[]>
  readonly packets: Readonly<Record<Counter, number>>
  /** The parts that never change by themselves. */
  readonly parts: Parts
  /** The parts that another program changed, as text for people. */
  readonly damage: readonly string[]
}

/** Reads one or more outputs of `nft -j list table inet|bridge namegate_intercept`. */
export function parseInForce(...tables: readonly string[]): InForce {
  const packets = { taken: 0, forged: 0, unheard: 0, own: 0, guarded: 0, bridged: 0 }
  const sets = new Map<string, readonly string[]>()
  let about = ''
  const items = tables.flatMap(itemsOf)
  for (const item of items) {
    const counter = fieldOf(item, 'counter')
    const name = COUNTERS.find((each) => each === fieldOf(counter, 'name'))
    if (name !== undefined) packets[name] += Number(fieldOf(counter, 'packets') ?? 0)
    const set = fieldOf(item, 'set')
    if (FOLLOWING.includes(String(fieldOf(set, 'type')))) {
      const key = `${String(fieldOf(set, 'family'))} ${String(fieldOf(set, 'name'))}`
      sets.set(key, listOf(fieldOf(set, 'elem')).map(String).toSorted())
    }
    const rule = fieldOf(item, 'rule')
    const comment = fieldOf(rule, 'comment')
    if (fieldOf(rule, 'chain') === ABOUT_CHAIN && typeof comment === 'string') about = comment
  }
  const parts = partsOf(items)
  return { about, sets, packets, parts, damage: damageOf(parts, digestsOf(items)) }
}

export interface ForeignChains {
  /** Tables to search, as arguments of `nft list table`. */
  readonly suspects: readonly (readonly [family: string, table: string])[]
  /** Tables that drop incoming packets unless a rule admits them. */
  readonly closed: readonly string[]
}

/** Reads the output of `nft -j list chains`. */
export function parseChains(json: string, plan: InterceptPlan): ForeignChains {
  const suspects = new Map<string, readonly [string, string]>()
  const closed: string[] = []
  for (const item of itemsOf(json)) {
    const chain = fieldOf(item, 'chain')
    const [family, table] = [String(fieldOf(chain, 'family')), String(fieldOf(chain, 'table'))]
    const hook = fieldOf(chain, 'hook')
    if (table === TABLE || !['inet', 'ip', 'ip6'].includes(family)) continue
    if (hook === 'input' && fieldOf(chain, 'policy') === 'drop') closed.push(`${family} ${table}`)
    const before = Number(fieldOf(chain, 'prio')) <= REDIRECT_PRIORITY
    const isSuspect =
      (plan.tproxy.length > 0 && hook === 'prerouting' && fieldOf(chain, 'type') === 'filter') ||
      (plan.redirect !== undefined &&
        hook === 'output' &&
        fieldOf(chain, 'type') === 'nat' &&
        before)
    if (isSuspect) suspects.set(`${family} ${table}`, [family, table])
  }
  return { suspects: [...suspects.values()], closed: [...new Set(closed)] }
}

/** Returns why a rule in `nft -j list table FAMILY TABLE` is in the way, or undefined if none is. */
export function foreignRule(json: string, plan: InterceptPlan): string | undefined {
  const takes = plan.tproxy.length > 0 ? TPROXY : []
  const turns = plan.redirect === undefined ? [] : REDIRECT
  for (const item of itemsOf(json)) {
    const rule = fieldOf(item, 'rule')
    const expressions = listOf(fieldOf(rule, 'expr'))
    const does = expressions.map(statementOf)
    const found = [...takes, ...turns].find((each) => does.includes(each))
    if (found === undefined || !takesDns(expressions)) continue
    const where = ['family', 'table', 'chain'].map((key) => String(fieldOf(rule, key))).join(' ')
    const what = found.toLowerCase()
    return `a rule of table and chain "${where}" sends port ${DNS_PORT} elsewhere (${what}): remove it`
  }
  return undefined
}

/** Statement names in nft and in iptables. */
const TPROXY: readonly string[] = ['tproxy', 'TPROXY']
const REDIRECT: readonly string[] = ['redirect', 'REDIRECT', 'dnat', 'DNAT']

/** Returns the name of the statement or match of an expression, such as `dnat`, or `DNAT` for a rule of iptables. */
export function statementOf(expression: unknown): string {
  const target = fieldOf(fieldOf(expression, 'xt'), 'name')
  if (typeof target === 'string') return target
  return typeof expression === 'object' && expression !== null
    ? (Object.keys(expression)[0] ?? '')
    : ''
}

/** True if the rule names port 53, or matches on nothing that could exclude DNS. */
function takesDns(expressions: readonly unknown[]): boolean {
  const matches = expressions
    .map((each) => fieldOf(each, 'match'))
    .filter((each) => each !== undefined)
  const ports = matches.filter(
    (match) => fieldOf(fieldOf(fieldOf(match, 'left'), 'payload'), 'field') === 'dport',
  )
  if (ports.length > 0) return ports.every((match) => admits(fieldOf(match, 'right')))
  return matches.every(
    (match) => fieldOf(fieldOf(fieldOf(match, 'left'), 'meta'), 'key') === 'l4proto',
  )
}

/** True if a port, a range of ports, or a set of both includes port 53. A named set is assumed to include it. */
export function admits(right: unknown): boolean {
  if (typeof right === 'number') return right === DNS_PORT
  const [low, high] = listOf(fieldOf(right, 'range')).map(Number)
  if (low !== undefined && high !== undefined) return low <= DNS_PORT && DNS_PORT <= high
  const set = listOf(fieldOf(right, 'set'))
  return typeof right === 'string' ? right.startsWith('@') : set.some(admits)
}

/** Returns the objects of an output of `nft -j`. */
export function itemsOf(json: string): readonly unknown[] {
  if (json.trim() === '') return []
  const parsed: unknown = JSON.parse(json)
  return listOf(fieldOf(parsed, 'nftables'))
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
