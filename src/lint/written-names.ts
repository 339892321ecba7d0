// `writtenNames` reads the names and patterns of a policy file as the file writes them, list by list, with their places. Rules keep only
// the meaning of a name and not its spelling. Therefore the file is read again, with every entry under a key `toFQDNs` or `dns`.

import { parseYaml } from '../documents/yaml-source.ts'
import type { Position } from '../core/errors.ts'
import { EVERYTHING, type PortRange } from '../core/protocol.ts'
import { isMapping, Reader } from '../documents/source-document.ts'
import { parseMatchPattern, type Pattern } from '../policy/match/pattern.ts'
import type { Policy } from '../policy/rule.ts'

/** A name or pattern. `text` is its spelling in the file. */
export interface WrittenName {
  readonly text: string
  readonly pattern: Pattern
  readonly position: Position
  /** The ports for which a line of an allow-list allows the name. Absent in other lists, whose names all have the same ports. */
  readonly ports?: readonly PortRange[]
}

/** The names of one list. */
export interface NameList {
  /** `dns`: names that can be asked. `toFQDNs`: names whose addresses can be reached. */
  readonly kind: 'toFQDNs' | 'dns'
  readonly names: readonly WrittenName[]
}

const NAME_KEYS: readonly string[] = ['matchName', 'matchPattern']

/** Returns the names of a file. The file must load without faults. Empty for a file that is not YAML. */
export function writtenNames(text: string, file: string): readonly NameList[] {
  const lists: NameList[] = []
  for (const document of parseYaml(text, file).documents)
    visit(new Reader(document, { faults: [] }), lists)
  return lists
}

/** Returns the names under `toFQDNs` at the places of their rules. Each line of an allow-list is one rule. */
export function namesOfRules({ rules }: Policy): NameList {
  const names = rules.flatMap(({ peers, toPorts, position }) => {
    if (peers.kind === 'any') return []
    const ports = toPorts?.flatMap((each) => each.ports) ?? [EVERYTHING]
    return peers.selectors.flatMap((peer) =>
      peer.kind === 'fqdn'
        ? [{ text: peer.pattern.text, pattern: peer.pattern, position, ports }]
        : [],
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
