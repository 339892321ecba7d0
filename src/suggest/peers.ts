// Peers makes rules from connections. One rule contains all names that were reached at exactly the same ports. Addresses without names are
// grouped by ports in the same way. Known endpoints and resources with the same labels have a rule of their own. The rules do not depend on
// the order of the connections.

import { byDomain, collapse, compare, type NamesAndPatterns } from './collapse.ts'
import { allOf, Evidence } from './evidence.ts'
import type { Connection } from './needs.ts'

/** The peers of one suggested rule. */
export type SuggestedPeer =
  | { readonly kind: 'names'; readonly names: NamesAndPatterns }
  | { readonly kind: 'addresses'; readonly prefixes: readonly string[] }
  /** The labels that known endpoints or resources have in common. */
  | { readonly kind: 'endpoints'; readonly labels: readonly string[] }

export interface SuggestedRule {
  readonly peer: SuggestedPeer
  readonly ports: readonly Port[]
  readonly evidence: Evidence
}

export interface Port {
  readonly port: number
  readonly protocol: string
}

/** The text by which a rule names a peer. */
export interface PeerText {
  readonly kind: SuggestedPeer['kind']
  /** A name or pattern, a prefix, or labels as JSON. */
  readonly text: string
}

/** A peer, with the evidence of each port at which the peer was reached. */
interface Found extends PeerText {
  readonly ports: FoundPorts
}

type FoundPorts = Map<string, { readonly port: Port; readonly evidence: Evidence }>

const ORDER: readonly SuggestedPeer['kind'][] = ['names', 'endpoints', 'addresses']

export class Peers {
  readonly #found = new Map<string, Found>()

  add(
    peer: PeerText,
    reached: Pick<Connection, 'port' | 'protocol'> & { readonly evidence: Evidence },
  ): void {
    const key = `${peer.kind} ${peer.text}`
    const ports: FoundPorts = this.#found.get(key)?.ports ?? new Map()
    const { port, protocol, evidence } = reached
    const at = portKey({ port, protocol })
    const known = ports.get(at) ?? { port: { port, protocol }, evidence: new Evidence() }
    known.evidence.merge(evidence)
    ports.set(at, known)
    this.#found.set(key, { ...peer, ports })
  }

  /**
   * Returns the rules: first names, then peers by label, then addresses. If at least `collapseFrom` siblings were reached at a port, a
   * pattern replaces them. Call this once, because it changes what was added.
   */
  rules(collapseFrom: number): readonly SuggestedRule[] {
    const found = [...this.#found.values()]
    const patterns = patternsIn(found, collapseFrom)
    const groups = new Map<string, Found[]>()
    for (const each of [...found, ...patterns.found]) {
      const ports = [...each.ports.keys()].sort().join(' ')
      if (ports === '') continue
      const alone = each.kind === 'endpoints' ? each.text : ''
      const key = `${ORDER.indexOf(each.kind)} ${ports} ${alone}`
      groups.set(key, [...(groups.get(key) ?? []), each])
    }
    return [...groups]
      .sort(([a], [b]) => compare(a, b))
      .map(([, those]) => ruleOf(those, patterns.names))
  }
}

function ruleOf(those: readonly Found[], patterns: ReadonlyMap<string, number>): SuggestedRule {
  const all = those.flatMap(({ ports }) => [...ports.values()])
  const ports = new Map(all.map(({ port }) => [portKey(port), port]))
  return {
    peer: peerOf(those[0]?.kind ?? 'names', those, patterns),
    ports: [...ports].sort(([a], [b]) => compare(a, b)).map(([, port]) => port),
    evidence: allOf(all.map(({ evidence }) => evidence)),
  }
}

/** Replaces siblings by patterns, port by port. Removes the port from each sibling, and counts the names that each pattern replaces. */
function patternsIn(
  found: readonly Found[],
  collapseFrom: number,
): { readonly found: readonly Found[]; readonly names: ReadonlyMap<string, number> } {
  const named = new Map(
    found.filter(({ kind }) => kind === 'names').map((each) => [each.text, each]),
  )
  const made = new Map<string, Found>()
  const names = new Map<string, Set<string>>()
  for (const at of new Set([...named.values()].flatMap(({ ports }) => [...ports.keys()]))) {
    const there = [...named.values()].filter(({ ports }) => ports.has(at)).map(({ text }) => text)
    for (const [text, siblings] of collapse(there, collapseFrom).patterns) {
      const pattern: Found = made.get(text) ?? { kind: 'names', text, ports: new Map() }
      made.set(text, pattern)
      names.set(text, new Set([...(names.get(text) ?? []), ...siblings]))
      for (const name of siblings) {
        const ports = named.get(name)?.ports
        const own = ports?.get(at)
        if (own === undefined) continue
        const known = pattern.ports.get(at) ?? { port: own.port, evidence: new Evidence() }
        known.evidence.merge(own.evidence)
        pattern.ports.set(at, known)
        ports?.delete(at)
      }
    }
  }
  const counts = [...names].map(([text, those]): [string, number] => [text, those.size])
  return { found: [...made.values()], names: new Map(counts) }
}

function peerOf(
  kind: SuggestedPeer['kind'],
  those: readonly Found[],
  patterns: ReadonlyMap<string, number>,
): SuggestedPeer {
  const texts = those.map(({ text }) => text)
  switch (kind) {
    case 'names': {
      const sorted = texts.sort(byDomain)
      const stands = sorted.flatMap((text): [string, number][] => {
        const names = patterns.get(text)
        return names === undefined ? [] : [[text, names]]
      })
      return { kind, names: { texts: sorted, patterns: new Map(stands) } }
    }
    case 'addresses':
      return { kind, prefixes: texts.sort() }
    case 'endpoints': {
      const labels: unknown = JSON.parse(texts[0] ?? '[]')
      return { kind, labels: Array.isArray(labels) ? labels.map(String) : [] }
    }
  }
}

/** Returns a key whose text order is the order by number, then by protocol. */
function portKey({ port, protocol }: Port): string {
  return `${String(port).padStart(5, '0')}/${protocol}`
}
