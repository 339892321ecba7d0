// Names and patterns as a policy file writes them, list by list, with their places; the rule type has only their meaning. Every
// entry under a `toFQDNs` or `dns` counts.

import { parseYaml } from '../documents/yaml-source.ts'
import type { Position } from '../core/errors.ts'
import { isMapping, Reader } from '../documents/source-document.ts'
import { parseMatchPattern, type Pattern } from '../policy/match/pattern.ts'
import type { Policy } from '../policy/rule.ts'

export interface WrittenName {
  readonly text: string
  readonly pattern: Pattern
  readonly position: Position
}

/** Names that stand in one list. */
export interface NameList {
  /** `dns` permits asking, `toFQDNs` connecting. */
  readonly kind: 'toFQDNs' | 'dns'
  readonly names: readonly WrittenName[]
}

const NAME_KEYS: readonly string[] = ['matchName', 'matchPattern']

/** Of a file that loads without faults; one that is no YAML has none. */
export function writtenNames(text: string, file: string): readonly NameList[] {
  const lists: NameList[] = []
  for (const document of parseYaml(text, file).documents)
    visit(new Reader(document, { faults: [] }), lists)
  return lists
}

/** Of an allow-list, which has a line for each name: what its rules say is what was written. */
export function namesOfRules({ rules }: Policy): NameList {
  const names = rules.flatMap(({ peers, position }) => {
    if (peers.kind === 'any') return []
    return peers.selectors.flatMap((peer) =>
      peer.kind === 'fqdn' ? [{ text: peer.pattern.text, pattern: peer.pattern, position }] : [],
    )
  })
  return { kind: 'toFQDNs', names }
}

function visit(reader: Reader, lists: NameList[]): void {
  if (Array.isArray(reader.value)) {
    for (const item of reader.items() ?? []) visit(item, lists)
    return
  }
  if (!isMapping(reader.value)) return
  for (const [key, value] of reader.entries() ?? []) {
    const isList = (key === 'toFQDNs' || key === 'dns') && Array.isArray(value.value)
    if (isList) lists.push({ kind: key, names: (value.items() ?? []).flatMap(namesIn) })
    else visit(value, lists)
  }
}

function namesIn(reader: Reader): readonly WrittenName[] {
  if (!isMapping(reader.value)) return []
  return (reader.entries() ?? []).flatMap(([key, value]) => {
    const text = NAME_KEYS.includes(key) && typeof value.value === 'string' ? value.value : ''
    const read = parseMatchPattern(text)
    if (read.kind === 'bad') return []
    return [{ text: text.trim(), pattern: read.pattern, position: value.position }]
  })
}
