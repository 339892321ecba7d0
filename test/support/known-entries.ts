// The entries of a node as texts.

import type { Node } from './nodes/node.ts'

/** Every entry as text, without its times. */
export function knownEntries(node: Node): readonly string[] {
  const { names, labelSets } = node.core
  const { prefixes } = node.core.ipcache
  const lines: string[] = []
  for (let entry = 1; entry <= names.entries.slots.high; entry++) {
    if (!names.entries.isUsed(entry)) continue
    const mapping = names.entries.mapping[entry]!
    const row = names.mappings.prefix[mapping]!
    const labels = labelSets.format(prefixes.derived[row]!).join(' ')
    const endpoint = node.endpoints.registry.byNumber(names.entries.endpoint[entry]!)?.name
    const name = names.names.format(names.mappings.name[mapping]!)
    lines.push(`${endpoint} ${name} ${prefixes.format(row)} ${prefixes.wanted[row]} ${labels}`)
  }
  return lines.sort()
}
