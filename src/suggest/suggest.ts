// `suggest` makes the smallest policy that allows recorded needs (peers.ts says how rules are made). Only patterns allow more than was
// seen, and a caller must ask for patterns. Needs that no policy can or should allow are listed in `leftOut`. The functions have no side
// effects, and equal needs give equal suggestions.

import { whyNoName } from '../core/name-like.ts'
import { isPolicyName } from '../policy/allow-text.ts'
import { CLUSTER_KEY, splitLabel } from '../policy/match/labels.ts'
import { isDnsConnection } from '../policy/dns-connection.ts'
import { collapse, compare, type NamesAndPatterns } from './collapse.ts'
import { allOf, type Evidence } from './evidence.ts'
import type { Needs, Place, Reached } from './needs.ts'
import { Peers, type PeerText, type SuggestedRule } from './peers.ts'

/** A need for which no rule is suggested: what it is, and why. */
export interface LeftOut {
  readonly what: string
  readonly why: string
  readonly evidence: Evidence
}

/** A suggested policy for the endpoints with `labels`. */
export interface Suggestion {
  readonly labels: readonly string[]
  /** The names that the suggestion lets the endpoints ask. Undefined when no name has to be added. */
  readonly asked: { readonly names: NamesAndPatterns; readonly evidence: Evidence } | undefined
  readonly rules: readonly SuggestedRule[]
  readonly leftOut: readonly LeftOut[]
}

export interface SuggestOptions {
  /** If at least this number of names have one parent, a pattern replaces them. */
  readonly collapseFrom: number
  /** `prefix`: an address without a name becomes a CIDR peer. `leave-out`: the connection is left out. */
  readonly nameless: 'prefix' | 'leave-out'
  readonly isGuarded: (address: string) => boolean
  /** Judges a name by the policies in force, for endpoints with these labels. */
  readonly judgeAsked: (labels: readonly string[], name: string) => Judgement
  /** Judges a connection by the policies in force, for endpoints with these labels. */
  readonly judgeReached: (labels: readonly string[], place: Place) => Judgement
}

/** `wanted`: a rule is missing. `allowed`: policy already allows it. `denied`: a deny rule decides, so that no added rule helps. */
export type Judgement = 'wanted' | 'allowed' | 'denied'

const PROTOCOLS: readonly string[] = ['TCP', 'UDP', 'SCTP']
/** Label sources whose labels do not identify an endpoint or resource. */
const DERIVED: readonly string[] = ['fqdn', 'cidr', 'reserved']
const HOST = 'reserved:host'

/** Returns the suggestion for these needs. */
export function suggest(needs: Needs, options: SuggestOptions): Suggestion {
  const { labels } = needs
  const leftOut: LeftOut[] = []
  const asked = new Map<string, Evidence>()
  for (const [name, evidence] of needs.asked) {
    if (!isPolicyName(name)) {
      leftOut.push({ ...whyUnnamed(name), evidence })
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

/** Returns true if the suggestion allows nothing. */
export function isEmpty({ asked, rules }: Suggestion): boolean {
  return asked === undefined && rules.length === 0
}

/** Returns why no rule is made for a connection: `allowed`, or the reason to list it as left out. Undefined if a rule must be made. */
function whyNot(
  labels: readonly string[],
  reached: Reached,
  { isGuarded, judgeReached, nameless }: SuggestOptions,
): string | undefined {
  if (reached.isForbidden) return 'a rule denies it'
  if (isDnsConnection(reached.protocol, reached.port)) return 'DNS goes through namegate'
  if (reached.labels.includes(HOST)) return 'it is an address of the node'
  if (isGuarded(reached.address)) return 'its address is guarded'
  if (!PROTOCOLS.includes(reached.protocol)) return 'its protocol has no ports'
  const hasPeer = reached.names.some(isPolicyName) || peerLabels(reached).length > 0
  if (!hasPeer && nameless === 'leave-out') return 'no name was answered with the address'
  const judged = judgeReached(labels, reached)
  if (judged === 'denied') return 'a rule denies it'
  return judged === 'allowed' ? 'allowed' : undefined
}

/**
 * Returns the peers by which a policy can allow a connection. If the peer is known, they are its labels. Otherwise, they are the names of
 * the address that the endpoints asked, or else all names of the address. If the address has no name, the peer is the address itself.
 */
function peersOf(reached: Reached, asked: ReadonlyMap<string, Evidence>): readonly PeerText[] {
  const labels = peerLabels(reached)
  if (labels.length > 0) return [{ kind: 'endpoints', text: JSON.stringify(labels) }]
  const names = reached.names.filter(isPolicyName)
  const own = names.filter((name) => asked.has(name))
  const chosen = own.length > 0 ? own : names
  if (chosen.length > 0) return chosen.map((text) => ({ kind: 'names', text }))
  const { address } = reached
  return [{ kind: 'addresses', text: `${address}/${address.includes(':') ? 128 : 32}` }]
}

/** Returns the labels that identify a peer. Only known endpoints and resources have such labels. */
export function peerLabels({ labels }: Pick<Reached, 'labels'>): readonly string[] {
  return labels.filter((label) => {
    const { source, key } = splitLabel(label)
    return !DERIVED.includes(source) && key !== CLUSTER_KEY
  })
}

function whyUnnamed(name: string): Pick<LeftOut, 'what' | 'why'> {
  const why = whyNoName(name)
  return why === undefined
    ? { what: JSON.stringify(name), why: 'no policy can name it' }
    : { what: name, why: `it ${why}` }
}

/** Returns a text such as `[2001:db8::9]:443/TCP`, or `192.0.2.1 ICMP` for a protocol without ports. */
function placeOf({ address, port, protocol }: Reached): string {
  if (!PROTOCOLS.includes(protocol)) return `${address} ${protocol}`
  return `${address.includes(':') ? `[${address}]` : address}:${port}/${protocol}`
}
