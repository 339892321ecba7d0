// A literal reading of docs/spec/semantics 3: the labels of a prefix, and what a selector selects, from a list of facts as texts. Each
// call reads the whole list. Shares only the parsing of prefixes with the IPCache.

import { containsPrefix } from '../../../src/core/ip.ts'
import { prefixOf } from '../nodes/node.ts'

const KINDS = ['node', 'endpoint', 'resource', 'name', 'policy'] as const

export interface NaiveFact {
  readonly prefix: string
  readonly kind: (typeof KINDS)[number]
  readonly owner: string
  readonly labels: readonly string[]
}

export function contains(outer: string, inner: string): boolean {
  return containsPrefix(prefixOf(outer), prefixOf(inner))
}

/** Sorted label texts of a prefix that has facts. */
export function naiveLabels(prefix: string, facts: readonly NaiveFact[]): readonly string[] {
  const around = facts
    .filter((fact) => contains(fact.prefix, prefix))
    .sort((a, b) => prefixOf(b.prefix).length - prefixOf(a.prefix).length || precedence(a, b))
  const isKnown = around.some(({ kind }) => kind !== 'name' && kind !== 'policy')
  const byKey = new Map<string, string>()
  let hasCidr = false
  for (const { labels } of around) {
    for (const label of labels) {
      if (label.startsWith('cidr:')) {
        if (hasCidr || isKnown) continue
        hasCidr = true
      }
      const key = /^(fqdn|cidr):/.test(label) ? label : (label.split('=')[0] ?? '')
      if (!byKey.has(key)) byKey.set(key, label)
    }
  }
  const family = prefixOf(prefix).family === 4 ? 'reserved:world-ipv4' : 'reserved:world-ipv6'
  const world = isKnown ? [] : ['reserved:world', family]
  return [...new Set([...byKey.values(), ...world])].sort()
}

/** Whether the prefix is the node's own address. */
export function isNode(prefix: string, facts: readonly NaiveFact[]): boolean {
  return facts.some((fact) => fact.prefix === prefix && fact.kind === 'node')
}

function precedence(a: NaiveFact, b: NaiveFact): number {
  const byKind = KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind)
  return byKind !== 0 ? byKind : a.owner < b.owner ? -1 : a.owner > b.owner ? 1 : 0
}

/** A selector is `fqdn:TEXT`, or `P` or `P except E`. */
export function naiveSelects(selector: string, labels: readonly string[]): boolean {
  if (selector.startsWith('fqdn:')) return labels.includes(selector)
  const [prefix = '', except] = selector.split(' except ')
  return labels.some((label) => {
    if (!label.startsWith('cidr:')) return false
    const carried = label.slice(5)
    return contains(prefix, carried) && (except === undefined || !contains(except, carried))
  })
}
