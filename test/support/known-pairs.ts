// The pairs of names and addresses that a node knows, as texts.

import type { Node } from './nodes/node.ts'

/** What is known of every pair, as text; times apart. */
export function knownPairs(node: Node): readonly string[] {
  const { names, labelSets } = node.core
  const { prefixes } = node.core.ipcache
  const lines: string[] = []
  for (let pair = 1; pair <= names.pairs.slots.high; pair++) {
    if (!names.pairs.isUsed(pair)) continue
    const mapping = names.pairs.mapping[pair]!
    const row = names.mappings.prefix[mapping]!
    const labels = labelSets.format(prefixes.derived[row]!).join(' ')
    const endpoint = node.endpoints.registry.byNumber(names.pairs.endpoint[pair]!)?.name
    const name = names.names.format(names.mappings.name[mapping]!)
    lines.push(`${endpoint} ${name} ${prefixes.format(row)} ${prefixes.wanted[row]} ${labels}`)
  }
  return lines.sort()
}
