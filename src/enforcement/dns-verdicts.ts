// DnsVerdicts decides if an endpoint can ask for a name. NamePatterns is one index of the patterns of all endpoints and all FQDN selectors.
// DnsVerdicts keeps, for each endpoint, the set of patterns that permit a question. It matches a name once. The result decides for any
// endpoint, and gives the labels of the name too (SelectorLabels.matchedSet). The cost does not grow with the number of exact and
// leading-star patterns.
//
// If policy treats UDP and TCP differently, an endpoint has one set for each. If clients choose their server, an endpoint has a further set
// for each kind of server that it asked. A kind of server is its identity, class, port and protocol, because rules can depend on these. A
// question that is denied is judged again without the audited policies. If that allows the question, the verdict is AUDITED.
// This code runs on the packet path. For a server that the endpoint asked before, it allocates nothing.

import type { EndpointId, Identity } from '../core/ids.ts'
import { TCP, UDP, type ByDnsProtocol, type DnsProtocol } from '../core/protocol.ts'
import type { Pattern } from '../policy/match/pattern.ts'
import type { NamePatterns } from '../policy/match/name-patterns.ts'
import type { ServerRules } from '../policy/compile/dns-rules.ts'

/** Verdict: the question is allowed. */
export const MAY_ASK = 0
/** Verdict: policy denies the name. */
export const NAME_DENIED = 1
/** Verdict: policy denies the server, whatever the name. */
export const SERVER_DENIED = 2
/** Verdict: the question is allowed, because only audited policies deny it. */
export const AUDITED = 4

/** The names that an endpoint can ask the configured servers, or a server that it chose. */
export interface AskingRules {
  /** The rules as if audited policies were enforced. */
  readonly rules: ServerRules
  /** The rules without audited policies; undefined if no policy is audited. */
  readonly audited: ServerRules | undefined
  /** The number of the set of rules that deny (RuleOrigins); 0 for an empty set. */
  readonly deniedBy: number
  /** The number of the set of audited rules that would deny (RuleOrigins); 0 for an empty set. */
  readonly auditedBy: number
}

/** A server as policy sees it, and the protocol of the question. ServerIdentity fills one object again for each query. */
export interface DnsServer {
  readonly identity: Identity
  readonly addressClass: Identity
  readonly port: number
  readonly protocol: DnsProtocol
}

/** How many kinds of servers are remembered per endpoint. When one more comes, DnsVerdicts first forgets all of them. */
const SERVERS_MAX = 64
/** For keys of servers. Identities are below 2^25, classes below 2^4, ports below 2^16; with two protocols a key is below 2^46. */
const CLASSES = 16
const PORTS = 65_536

type Permission =
  | { readonly kind: 'every-name' }
  | { readonly kind: 'no-name' }
  | { readonly kind: 'not-admitted' }
  | {
      readonly kind: 'names'
      /** The numbers of `patterns` in NamePatterns. */
      readonly numbers: ReadonlySet<number>
      readonly patterns: readonly Pattern[]
    }

interface Asking extends Pick<AskingRules, 'deniedBy' | 'auditedBy'> {
  readonly rules: Permission
  readonly audited: Permission | undefined
}

interface Asker {
  readonly ofPool: ByDnsProtocol<Asking>
  readonly rulesAt: (server: DnsServer) => AskingRules
  readonly byServer: Map<number, Asking>
}

export class DnsVerdicts {
  readonly #patterns: NamePatterns
  readonly #askers = new Map<EndpointId, Asker>()
  #deniedBy = 0
  #isMatched = false

  constructor(options: { readonly patterns: NamePatterns }) {
    this.#patterns = options.patterns
  }

  /** True if the last verdict matched the name, so that `NamePatterns.matched` has the patterns of that name. */
  get isMatched(): boolean {
    return this.#isMatched
  }

  /** The number of the set of rules that denied the last question, or would have without audit; 0 if none did. */
  get deniedBy(): number {
    return this.#deniedBy
  }

  /** Sets the rules of an endpoint. `rules`: for the configured servers. `rulesAt`: makes the rules for a server that the client chose. */
  set(
    endpoint: EndpointId,
    rules: ByDnsProtocol<AskingRules>,
    rulesAt: (server: DnsServer) => AskingRules,
  ): void {
    const before = this.#askers.get(endpoint)
    const udp = this.#hold(rules[UDP])
    const tcp = rules[TCP] === rules[UDP] ? udp : this.#hold(rules[TCP])
    this.#askers.set(endpoint, { ofPool: { [UDP]: udp, [TCP]: tcp }, rulesAt, byServer: new Map() })
    this.#forget(before)
  }

  remove(endpoint: EndpointId): void {
    const before = this.#askers.get(endpoint)
    this.#askers.delete(endpoint)
    this.#forget(before)
  }

  /**
   * Judges a question to the configured servers over `protocol`. The lower-case name stands in wire format at `offset`. Returns MAY_ASK,
   * AUDITED or NAME_DENIED; NAME_DENIED for an endpoint without rules.
   */
  judge(endpoint: EndpointId, protocol: DnsProtocol, wire: Uint8Array, offset: number): number {
    const asker = this.#askers.get(endpoint)
    this.#deniedBy = 0
    this.#isMatched = false
    return asker === undefined ? NAME_DENIED : this.#verdict(asker.ofPool[protocol], wire, offset)
  }

  /** Judges a question to a server that the client chose. Returns any of the four verdicts; SERVER_DENIED for an endpoint without rules. */
  judgeAt(endpoint: EndpointId, server: DnsServer, wire: Uint8Array, offset: number): number {
    const asker = this.#askers.get(endpoint)
    this.#deniedBy = 0
    this.#isMatched = false
    if (asker === undefined) return SERVER_DENIED
    const { identity, addressClass, port, protocol } = server
    const place = (identity * CLASSES + addressClass) * PORTS + port
    const key = place * 2 + (protocol === TCP ? 1 : 0)
    const asking =
      asker.byServer.get(key) ??
      this.#holdAt(asker, key, { identity, addressClass, port, protocol })
    return this.#verdict(asking, wire, offset)
  }

  #verdict(asking: Asking, wire: Uint8Array, offset: number): number {
    const { audited } = asking
    const verdict = this.#look(asking.rules, wire, offset)
    if (verdict === MAY_ASK) return MAY_ASK
    const without = audited === undefined ? verdict : this.#look(audited, wire, offset)
    this.#deniedBy = without === MAY_ASK ? asking.auditedBy : asking.deniedBy
    return without === MAY_ASK ? AUDITED : without
  }

  #look(permission: Permission, wire: Uint8Array, offset: number): number {
    if (permission.kind === 'not-admitted') return SERVER_DENIED
    if (permission.kind === 'no-name') return NAME_DENIED
    if (permission.kind === 'every-name') return MAY_ASK
    if (!this.#isMatched) this.#patterns.match(wire, offset)
    this.#isMatched = true
    const { items, count } = this.#patterns.matched
    for (let i = 0; i < count; i++) if (permission.numbers.has(items[i]!)) return MAY_ASK
    return NAME_DENIED
  }

  #holdAt(asker: Asker, key: number, server: DnsServer): Asking {
    const { byServer } = asker
    if (byServer.size === SERVERS_MAX) {
      const all = [...byServer.values()]
      byServer.clear()
      for (const asking of all) this.#release(asking)
    }
    const asking = this.#hold(asker.rulesAt(server))
    byServer.set(key, asking)
    return asking
  }

  #hold({ rules, audited, deniedBy, auditedBy }: AskingRules): Asking {
    return {
      rules: this.#permit(rules),
      audited: audited === undefined ? undefined : this.#permit(audited),
      deniedBy,
      auditedBy,
    }
  }

  #permit(rules: ServerRules): Permission {
    if (rules.kind !== 'names') return rules
    const { patterns } = rules
    // With a pattern for every name, no match is needed.
    if (patterns.some(({ kind }) => kind === 'every')) return { kind: 'every-name' }
    const numbers = new Set(patterns.map((pattern) => this.#patterns.hold(pattern)))
    return { kind: 'names', numbers, patterns }
  }

  #forget(asker: Asker | undefined): void {
    if (asker === undefined) return
    const { [UDP]: udp, [TCP]: tcp } = asker.ofPool
    this.#release(udp)
    if (tcp !== udp) this.#release(tcp)
    for (const asking of asker.byServer.values()) this.#release(asking)
  }

  #release({ rules, audited }: Asking): void {
    this.#drop(rules)
    if (audited !== undefined) this.#drop(audited)
  }

  #drop(permission: Permission): void {
    if (permission.kind !== 'names') return
    for (const pattern of permission.patterns) this.#patterns.release(pattern)
  }
}
