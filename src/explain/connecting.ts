// `explainConnecting` explains if an endpoint can connect to an address, or to the addresses of a name. If the question has only a name,
// the strictest verdict on the known addresses of the name applies. If no address of the name is known, the verdict is about an assumed
// IPv4 address that no selected prefix except 0.0.0.0/0 contains. A note says if an assumed IPv6 address gets another verdict.
//
// `decide` reads the coverages of the three keys that judge a packet (datapath.ts step 6), from which the policy map is made, and evaluates
// those that cover the port together. A flattened entry can name fewer rules than apply to one port.

import type { Identity } from '../core/ids.ts'
import { formatAddress } from '../core/ip.ts'
import { formatName } from '../core/name.ts'
import { formatPort, formatProtocol, PORT_PROTOCOLS } from '../core/protocol.ts'
import { coveragesOf } from '../datapath/flat-rules.ts'
import type { Outcome } from '../datapath/verdict.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { SharedRules } from '../enforcement/shared-rules.ts'
import { ANY_IDENTITY, HOST } from '../identity/reserved.ts'
import { isKnownClass } from '../ipcache/derive.ts'
import { DEFAULT_ORIGIN } from '../policy/compile/compile.ts'
import type { Coverage, FlatAction } from '../policy/compile/flatten.ts'
import { evaluate } from '../policy/compile/tiers.ts'
import { askNameAgain } from '../policy/allow-text.ts'
import { ASK_AGAIN, isDnsConnection } from '../policy/dns-connection.ts'
import type { Policy } from '../policy/rule.ts'
import { lineForPeer, wordForRule } from './allow-lists.ts'
import type { Asker, ExplainedRule, Explanation, Question } from './explanation.ts'
import { knownAddresses, namesOf } from './known-addresses.ts'
import { wordsOf } from './name-closeness.ts'
import { nearestAllow, type Target } from './nearest.ts'
import { keyOf, type Peer, peerAt } from './peer.ts'
import {
  auditWords,
  defaultOf,
  deniedVerdict,
  explained,
  includes,
  matchedBy,
  numbersOf,
  peerOf,
  rulesOf,
  sorted,
  textOf,
  unselectedNote,
} from './rules.ts'

type Connect = Extract<Question, { readonly kind: 'connect' }>

interface Parts {
  readonly core: CoreState
  /** The compiled policy in force for the endpoint. */
  readonly shared: SharedRules
  /** All policies, for the nearest rule. */
  readonly all: readonly Policy[]
}

interface Judged {
  readonly peer: Peer
  readonly decision: Decision
}

/** How many addresses of a name, and names of an address, are checked at most. */
const LOOKED_AT_MAX = 16

/** Explains if an endpoint can connect. The file header says which addresses are judged. */
export function explainConnecting(parts: Parts, asker: Asker, question: Connect): Explanation {
  const { core, shared } = parts
  const { protocol, port } = question
  const judged = peersOf(core, asker, question).map((peer) => {
    return { peer, decision: decide(core, shared, peer, protocol, port) }
  })
  // If no address is known, the assumed IPv4 address comes first, and it alone decides.
  const counted = judged.filter(({ peer }, i) => i === 0 || peer.address !== undefined)
  const hardest = counted.reduce((a, b) => (isDenied(b) && !isDenied(a) ? b : a))
  const { peer, decision } = hardest
  const denied = isDenied(hardest)
  const rules = rulesOf(shared.compiled.policies)
  const verdict = decision.verdict === 'audit' ? 'audit' : 'allow'
  const isByDefault = (denied || decision.byAudit) && decision.rules.length === 0
  const known = namesAt(core, question)
  const expired = known.length === 0 ? expiredNameAt(core, asker, question) : undefined
  return {
    verdict: denied ? deniedVerdict(asker) : verdict,
    reason: reasonOf(shared, decision, question) + auditWords(asker, denied),
    rules: decision.rules,
    selectors: sorted(rules.flatMap(({ rule }) => matchedBy(core, peer, rule))),
    identities: numbersOf(counted.map((each) => each.peer)),
    labels: peer.labels,
    default: defaultOf(shared),
    nearest:
      denied || decision.byAudit
        ? nearestAllow(
            { own: shared.compiled.policies, all: parts.all },
            targetOf(core, asker, question, peer, expired),
          )
        : null,
    add:
      isByDefault && expired === undefined
        ? lineForPeer(shared.compiled.policies, question, peer, known)
        : null,
    notes: [
      ...unselectedNote(shared),
      ...notesOf(judged, hardest, question, known),
      ...(denied && expired !== undefined ? [askNameAgain(formatName(expired))] : []),
      ...(isByDefault ? remediesOf(question, peer) : []),
    ],
  }
}

function peersOf(core: CoreState, asker: Asker, { name, address }: Connect): readonly Peer[] {
  if (address !== undefined) return [peerOf(core, asker, address, name)]
  const known = name === undefined ? [] : knownAddresses(core, name, LOOKED_AT_MAX)
  if (known.length > 0) return known.map((each) => peerOf(core, asker, each, name))
  return ([4, 6] as const).map((family) => peerAt(core, asker.id, family, undefined, name))
}

function isDenied({ decision: { verdict } }: Judged): boolean {
  return verdict === 'deny' || verdict === 'none'
}

function reasonOf(
  { compiled }: SharedRules,
  { verdict, rules, byDefault, byAudit }: Decision,
  { protocol, port }: Connect,
): string {
  const what = formatPort(protocol, port)
  const word = wordForRule(compiled.policies)
  if (byAudit) {
    return rules.length > 0
      ? `${what} passes, but an audited policy has a rule that denies it`
      : `${what} passes, but no ${word} allows it and an audited policy would turn default deny on`
  }
  const tier = rules[0]?.tier
  const by = tier === undefined ? `a ${word}` : `a rule of the tier ${tier}`
  if (verdict === 'deny') {
    return `${what} is denied by ${tier === undefined ? 'a rule; deny beats allow' : by}`
  }
  if (verdict === 'none') {
    if (word !== 'rule') return `${what} is denied: no ${word} allows it`
    return compiled.defaultDeny
      ? `${what} is denied: no rule allows it and a policy turns default deny on`
      : `${what} is denied: no rule allows it and default-egress is ${compiled.egress}`
  }
  const passes = verdict === 'allow' ? 'allowed' : 'audited'
  if (rules.length > 0) return `${what} is ${passes} by ${by}`
  const why = byDefault ? `default-egress is ${compiled.egress}` : 'by default'
  return `${what} is ${passes}: no policy turns default deny on and ${why}`
}

function targetOf(
  core: CoreState,
  asker: Asker,
  question: Connect,
  peer: Peer,
  expired: Uint8Array | undefined,
): Target {
  const { name, protocol, port } = question
  return {
    labels: asker.labels,
    name: name === undefined ? undefined : wordsOf(name),
    expired: expired === undefined ? undefined : wordsOf(expired),
    address: peer.address,
    isGuarded: peer.isGuarded,
    isKnown: isKnownClass(peer.addressClass),
    protocol,
    port,
    includes: (selector) => includes(core, peer, selector),
    textOf: (selector) => textOf(core, selector),
  }
}

/** Returns the names that led to the address, if the question has no name. */
function namesAt(core: CoreState, { name, address }: Connect): readonly string[] {
  return name === undefined && address !== undefined ? namesOf(core, address, LOOKED_AT_MAX) : []
}

/** Returns the name of the address, in wire form, that expired last for the endpoint, if the question has no name. */
function expiredNameAt(
  { expiry }: CoreState,
  { id }: Asker,
  { name, address }: Connect,
): Uint8Array | undefined {
  if (name !== undefined || address === undefined) return undefined
  return expiry.expired.find(id, address.family, address.octets)
}

function notesOf(
  judged: readonly Judged[],
  hardest: Judged,
  { name }: Connect,
  known: readonly string[],
): readonly string[] {
  const notes: string[] = []
  const { peer } = hardest
  if (peer.address === undefined) {
    const whose = name === undefined ? '' : ` of ${formatName(name)}`
    notes.push(
      `no address${whose} is known yet: if a rule names its address or network, the verdict can differ`,
    )
  }
  for (const each of judged) {
    if (isDenied(each) === isDenied(hardest)) continue
    notes.push(`${placeOf(each.peer)} is ${isDenied(each) ? 'denied' : 'allowed'}`)
  }
  if (peer.isGuarded && peer.addressClass !== HOST && isDenied(hardest)) {
    notes.push(`${placeOf(peer)} is guarded, so no name opens it`)
  }
  if (known.length > 0) notes.push(`${placeOf(peer)} is known by ${known.join(', ')}`)
  return notes
}

/** What helps against a denial by default, where no line of a list does. */
function remediesOf({ protocol, port }: Connect, peer: Peer): readonly string[] {
  const name = formatProtocol(protocol)
  if (isDnsConnection(name, port)) return [ASK_AGAIN]
  const isHost = peer.addressClass === HOST
  return [
    ...(isHost
      ? [`${placeOf(peer)} is an address of this host: a rule with toEntities: [host] allows it`]
      : []),
    ...(PORT_PROTOCOLS.includes(protocol)
      ? []
      : [`${name} has no ports: a rule without toPorts allows it`]),
  ]
}

function placeOf({ family, address }: Peer): string {
  return address === undefined ? `IPv${family}` : formatAddress(family, address.octets)
}

/** The verdict on connections to one address, with the rules behind it. */
export interface Decision {
  readonly verdict: Outcome['verdict']
  readonly rules: readonly ExplainedRule[]
  /** True if the endpoint's default is one of the reasons for the verdict. */
  readonly byDefault: boolean
  /** True if traffic passes only because the policies that deny it are audited. */
  readonly byAudit: boolean
}

/** Decides on connections to one address, protocol and port. */
export function decide(
  core: CoreState,
  shared: SharedRules,
  peer: Peer,
  protocol: number,
  port: number,
): Decision {
  const keys = new Set<Identity>([keyOf(peer), peer.addressClass, ANY_IDENTITY])
  const covering = [...keys]
    .flatMap((key) => coveragesOf(shared.rules, key, peer.selectedBy))
    .filter((each) => isIn(each, protocol, port))
  const found = evaluate(covering)
  const verdict = verdictOf(found?.action)
  const origins = new Set(verdict === 'none' ? [] : found?.origins)
  const rules = rulesOf(shared.compiled.policies)
    .filter(({ policy, rule }) => origins.has(core.origins.originOf(policy, rule)))
    .map(explained)
  const byDefault = origins.has(DEFAULT_ORIGIN)
  return { verdict, rules, byDefault, byAudit: verdict === 'audit' && !byDefault }
}

function verdictOf(action: FlatAction | undefined): Outcome['verdict'] {
  switch (action) {
    case 'allow':
    case 'deny':
      return action
    case 'audit':
    case 'audit-pass':
      return 'audit'
    case 'audit-deny':
    case 'weak-deny':
    case undefined:
      return 'none'
  }
}

function isIn({ range }: Coverage, protocol: number, port: number): boolean {
  if (range.protocol === 0) return true
  return range.protocol === protocol && range.low <= port && port <= range.high
}
