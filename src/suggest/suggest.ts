// The smallest policy that allows what was seen: a rule for each set of ports, with all names, addresses or peers that were reached
// at just these. Nothing is wider than it was seen but patterns, which are asked for. What no policy can say, or none should, is left
// out and told. Pure; the same needs give the same suggestion.

import { parseMatchName } from '../policy/match/pattern.ts'
import { CLUSTER_KEY, splitLabel } from '../policy/match/labels.ts'
import { collapse, compare, type NamesAndPatterns } from './collapse.ts'
import { allOf, type Evidence } from './evidence.ts'
import type { Needs, Reached } from './needs.ts'
import { Peers, type PeerText, type SuggestedRule } from './peers.ts'

export interface LeftOut {
  readonly what: string
  readonly why: string
  readonly evidence: Evidence
}

export interface Suggestion {
  readonly labels: readonly string[]
  /** Names to ask for; undefined when none has to be. */
  readonly asked: { readonly names: NamesAndPatterns; readonly evidence: Evidence } | undefined
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
  const peers = new Peers()
  for (const reached of needs.reached) {
    const why = whyNot(labels, reached, options)
    if (why === 'allowed') continue
    if (why !== undefined) leftOut.push({ what: placeOf(reached), why, evidence: reached.evidence })
    else for (const peer of peersOf(reached, needs.asked)) peers.add(peer, reached)
  }
  return {
    labels,
    asked: askedOf(asked, options.collapseFrom),
    rules: peers.rules(options.collapseFrom),
    leftOut: leftOut.sort((a, b) => compare(a.why, b.why) || compare(a.what, b.what)),
  }
}

function askedOf(asked: ReadonlyMap<string, Evidence>, collapseFrom: number): Suggestion['asked'] {
  if (asked.size === 0) return undefined
  const { texts, patterns } = collapse(asked.keys(), collapseFrom)
  const counts = [...patterns].map(([text, names]): [string, number] => [text, names.length])
  return { names: { texts, patterns: new Map(counts) }, evidence: allOf(asked.values()) }
}

/** Whether there is anything to allow. */
export function isEmpty({ asked, rules }: Suggestion): boolean {
  return asked === undefined && rules.length === 0
}

/** Why it is no part of a policy; undefined when it is. */
function whyNot(
  labels: readonly string[],
  reached: Reached,
  { isGuarded, judgeReached, nameless }: SuggestOptions,
): string | undefined {
  if (reached.isForbidden) return 'a rule denies it'
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
function peersOf(reached: Reached, asked: ReadonlyMap<string, Evidence>): readonly PeerText[] {
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
  return labels.filter((label) => {
    const { source, key } = splitLabel(label)
    return !DERIVED.includes(source) && key !== CLUSTER_KEY
  })
}

function isPlain(name: string): boolean {
  return parseMatchName(name).kind === 'ok'
}

/** `[2001:db8::9]:443/TCP`, for protocols without ports `192.0.2.1 ICMP`. */
function placeOf({ address, port, protocol }: Reached): string {
  if (!PROTOCOLS.includes(protocol)) return `${address} ${protocol}`
  return `${address.includes(':') ? `[${address}]` : address}:${port}/${protocol}`
}
