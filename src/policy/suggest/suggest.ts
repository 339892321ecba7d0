// The smallest policy that allows what was seen: a rule for each set of ports, with all names, addresses or peers that were reached
// at just these. Nothing is wider than it was seen but patterns, which are asked for. What no policy can say, or none should, is left
// out and told. Pure; the same needs give the same suggestion.

import { parseMatchName } from '../pattern.ts'
import { splitLabel } from '../labels.ts'
import { collapse, compare, type Collapsed } from './collapse.ts'
import { allOf, Evidence } from './evidence.ts'
import type { Needs, Reached } from './needs.ts'

export type SuggestedPeer =
  | { readonly kind: 'names'; readonly names: Collapsed }
  | { readonly kind: 'addresses'; readonly prefixes: readonly string[] }
  /** Labels of one kind of known endpoints or resources. */
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

export interface LeftOut {
  readonly what: string
  readonly why: string
  readonly evidence: Evidence
}

export interface Suggestion {
  readonly labels: readonly string[]
  /** Names to ask for; undefined when none has to be. */
  readonly asked: { readonly names: Collapsed; readonly evidence: Evidence } | undefined
  readonly rules: readonly SuggestedRule[]
  readonly leftOut: readonly LeftOut[]
}

export interface SuggestOptions {
  /** So many names with one parent become a pattern. */
  readonly collapseFrom: number
  /** What becomes of addresses that no name was answered with. */
  readonly nameless: 'prefix' | 'leave-out'
  readonly isGuarded: (address: string) => boolean
  /** Whether what is in force allows it already, or forbids it whatever is added. */
  readonly judgeAsked: (labels: readonly string[], name: string) => Judgement
  readonly judgeReached: (labels: readonly string[], reached: Reached) => Judgement
}

export type Judgement = 'wanted' | 'allowed' | 'denied'

const PROTOCOLS: readonly string[] = ['TCP', 'UDP', 'SCTP']
/** Sources of labels that say nothing of who a peer is. */
const DERIVED: readonly string[] = ['fqdn', 'cidr', 'reserved']
const HOST = 'reserved:host'

export function suggest(needs: Needs, options: SuggestOptions): Suggestion {
  const { labels } = needs
  const leftOut: LeftOut[] = []
  const asked = new Map<string, Evidence>()
  for (const [name, evidence] of needs.asked) {
    if (!isPlain(name)) {
      leftOut.push({ what: JSON.stringify(name), why: 'no policy can name it', evidence })
      continue
    }
    const judged = options.judgeAsked(labels, name)
    if (judged === 'wanted') asked.set(name, evidence)
    if (judged === 'denied') leftOut.push({ what: name, why: 'a rule denies asking', evidence })
  }
  const peers = new Map<string, Found>()
  for (const reached of needs.reached) {
    const why = whyNot(labels, reached, options)
    if (why === 'allowed') continue
    if (why !== undefined) leftOut.push({ what: placeOf(reached), why, evidence: reached.evidence })
    else for (const peer of peersOf(reached, needs.asked)) note(peers, peer, reached)
  }
  const names = collapse(asked.keys(), options.collapseFrom)
  return {
    labels,
    asked: asked.size === 0 ? undefined : { names, evidence: allOf(asked.values()) },
    rules: rulesOf([...peers.values()], options.collapseFrom),
    leftOut: leftOut.sort((a, b) => compare(a.why, b.why) || compare(a.what, b.what)),
  }
}

/** Whether there is anything to allow. */
export function isEmpty({ asked, rules }: Suggestion): boolean {
  return asked === undefined && rules.length === 0
}

/** One thing that was reached, with all ports of it. */
interface Found {
  readonly kind: SuggestedPeer['kind']
  /** A name, a prefix, or labels as JSON. */
  readonly text: string
  readonly ports: Map<string, Port>
  readonly evidence: Evidence
}

function note(
  peers: Map<string, Found>,
  peer: Pick<Found, 'kind' | 'text'>,
  reached: Reached,
): void {
  const key = `${peer.kind} ${peer.text}`
  const found = peers.get(key) ?? { ...peer, ports: new Map(), evidence: new Evidence() }
  const { port, protocol, evidence } = reached
  found.ports.set(portKey({ port, protocol }), { port, protocol })
  found.evidence.merge(evidence)
  peers.set(key, found)
}

/** Why it is no part of a policy; undefined when it is. */
function whyNot(
  labels: readonly string[],
  reached: Reached,
  { isGuarded, judgeReached, nameless }: SuggestOptions,
): string | undefined {
  if (reached.labels.includes(HOST)) return 'it is an address of the node'
  if (isGuarded(reached.address)) return 'its address is guarded'
  if (!PROTOCOLS.includes(reached.protocol)) return 'its protocol has no ports'
  const hasPeer = reached.names.some(isPlain) || peerLabels(reached).length > 0
  if (!hasPeer && nameless === 'leave-out') return 'no name was answered with the address'
  const judged = judgeReached(labels, reached)
  if (judged === 'denied') return 'a rule denies it'
  return judged === 'allowed' ? 'allowed' : undefined
}

/**
 * By what a policy can allow it: labels of a known peer, else the names that the endpoints themselves asked, else
 * all that the address was answered for, else the address.
 */
function peersOf(
  reached: Reached,
  asked: ReadonlyMap<string, Evidence>,
): readonly Pick<Found, 'kind' | 'text'>[] {
  const labels = peerLabels(reached)
  if (labels.length > 0) return [{ kind: 'endpoints', text: JSON.stringify(labels) }]
  const names = reached.names.filter(isPlain)
  const own = names.filter((name) => asked.has(name))
  const chosen = own.length > 0 ? own : names
  if (chosen.length > 0) return chosen.map((text) => ({ kind: 'names', text }))
  const { address } = reached
  return [{ kind: 'addresses', text: `${address}/${address.includes(':') ? 128 : 32}` }]
}

/** Labels that tell who a peer is: of known endpoints and resources. */
export function peerLabels({ labels }: Pick<Reached, 'labels'>): readonly string[] {
  return labels.filter((label) => !DERIVED.includes(splitLabel(label).source))
}

/** Names, then peers, then addresses; of those at the same ports one rule. */
function rulesOf(found: readonly Found[], collapseFrom: number): readonly SuggestedRule[] {
  const groups = new Map<string, Found[]>()
  for (const each of found) {
    const ports = [...each.ports.keys()].sort().join(' ')
    const alone = each.kind === 'endpoints' ? each.text : ''
    const key = `${ORDER.indexOf(each.kind)} ${ports} ${alone}`
    groups.set(key, [...(groups.get(key) ?? []), each])
  }
  return [...groups]
    .sort(([a], [b]) => compare(a, b))
    .map(([, those]) => {
      const [one] = those
      const ports = [...(one?.ports.values() ?? [])].sort((a, b) => compare(portKey(a), portKey(b)))
      const evidence = allOf(those.map((each) => each.evidence))
      return { peer: peerOf(one?.kind ?? 'names', those, collapseFrom), ports, evidence }
    })
}

const ORDER: readonly SuggestedPeer['kind'][] = ['names', 'endpoints', 'addresses']

function peerOf(
  kind: SuggestedPeer['kind'],
  those: readonly Found[],
  collapseFrom: number,
): SuggestedPeer {
  const texts = those.map(({ text }) => text)
  switch (kind) {
    case 'names':
      return { kind, names: collapse(texts, collapseFrom) }
    case 'addresses':
      return { kind, prefixes: texts.sort() }
    case 'endpoints': {
      const labels: unknown = JSON.parse(texts[0] ?? '[]')
      return { kind, labels: Array.isArray(labels) ? labels.map(String) : [] }
    }
  }
}

function isPlain(name: string): boolean {
  return parseMatchName(name).kind === 'ok'
}

/** Sorts by number, then protocol. */
function portKey({ port, protocol }: Port): string {
  return `${String(port).padStart(5, '0')}/${protocol}`
}

/** `[2001:db8::9]:443/TCP`, for protocols without ports `192.0.2.1 ICMP`. */
function placeOf({ address, port, protocol }: Reached): string {
  if (!PROTOCOLS.includes(protocol)) return `${address} ${protocol}`
  return `${address.includes(':') ? `[${address}]` : address}:${port}/${protocol}`
}
