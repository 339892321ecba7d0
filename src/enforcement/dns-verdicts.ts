// May this endpoint ask this name? One index holds all DNS patterns of all endpoints, and each endpoint has the set of patterns that
// permit. One look at the name answers for any endpoint. The cost does not grow with the number of exact and leading-star patterns.
// UDP and TCP have their own sets when policy tells them apart. When clients choose their server, each endpoint has one set for each
// kind of server that it asked, made when first needed: rules tell servers apart by identity, class, port and protocol.
// A denied question is judged again without audited policies, if there are any. When that allows it, the question is audited. Read on
// the packet path: for a server asked before, nothing is allocated.

import type { EndpointId, Identity } from '../core/ids.ts'
import { TCP, UDP, type ByDnsProtocol, type DnsProtocol } from '../core/protocol.ts'
import { IdList } from '../core/tables/id-list.ts'
import type { Pattern } from '../policy/match/pattern.ts'
import { PatternIndex } from '../policy/match/pattern-index.ts'
import type { ServerRules } from '../policy/compile/dns-rules.ts'

/** The verdicts: allowed; name denied; server denied; allowed because all policies that deny it are audited. */
export const MAY_ASK = 0
export const NAME_DENIED = 1
export const SERVER_DENIED = 2
export const AUDITED = 4

/** The names that an endpoint may ask, of the configured servers or of one that it chose. */
export interface AskingRules {
  /** As if no policy were audited. */
  readonly rules: ServerRules
  /** Without the effects of audited policies; undefined: none is audited. */
  readonly audited: ServerRules | undefined
  /** Numbers of the rules that deny, and of the audited rules that would deny (RuleOrigins). */
  readonly deniedBy: number
  readonly auditedBy: number
}

/** A server as policy sees it, and the protocol of the question. */
export interface DnsServer {
  readonly identity: Identity
  readonly addressClass: Identity
  readonly port: number
  readonly protocol: DnsProtocol
}

/** The most kinds of servers remembered per endpoint. With one more, all are forgotten. */
const SERVERS_MAX = 64
/** Identities are below 2^25, classes below 2^4, ports below 2^16, two protocols: a key below 2^46. */
const CLASSES = 16
const PORTS = 65_536

interface Counted {
  readonly id: number
  readonly pattern: Pattern
  users: number
}

type Permission =
  | { readonly kind: 'every-name' }
  | { readonly kind: 'no-name' }
  | { readonly kind: 'not-admitted' }
  | {
      readonly kind: 'names'
      readonly ids: ReadonlySet<number>
      readonly patterns: readonly Counted[]
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
  readonly #index = new PatternIndex()
  readonly #byText = new Map<string, Counted>()
  readonly #askers = new Map<EndpointId, Asker>()
  readonly #matched = new IdList()
  #nextId = 0
  #deniedBy = 0

  /** Number of the rules that denied the last question, or would have; 0 for none. */
  get deniedBy(): number {
    return this.#deniedBy
  }

  /** `rulesAt` gives the rules for a server that the endpoint chose itself. */
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
   * MAY_ASK, AUDITED or NAME_DENIED for the lower-case wire name at `offset`, where the configured servers are asked over
   * that protocol; NAME_DENIED for an endpoint without rules.
   */
  judge(endpoint: EndpointId, protocol: DnsProtocol, wire: Uint8Array, offset: number): number {
    const asker = this.#askers.get(endpoint)
    this.#deniedBy = 0
    return asker === undefined ? NAME_DENIED : this.#verdict(asker.ofPool[protocol], wire, offset)
  }

  /** MAY_ASK, AUDITED, NAME_DENIED or SERVER_DENIED, where the client chose that server at that port over that protocol. */
  judgeAt(
    endpoint: EndpointId,
    server: Pick<DnsServer, 'identity' | 'addressClass'>,
    port: number,
    protocol: DnsProtocol,
    wire: Uint8Array,
    offset: number,
  ): number {
    const asker = this.#askers.get(endpoint)
    this.#deniedBy = 0
    if (asker === undefined) return SERVER_DENIED
    const { identity, addressClass } = server
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
    const matched = this.#matched
    matched.clear()
    const count = this.#index.match(wire, offset, matched)
    for (let i = 0; i < count; i++) if (permission.ids.has(matched.items[i]!)) return MAY_ASK
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
    const ids = new Set<number>()
    const patterns: Counted[] = []
    for (const pattern of rules.patterns) {
      const counted = this.#byText.get(pattern.text) ?? this.#enter(pattern)
      // Most patterns occur once.
      if (ids.has(counted.id)) continue
      ids.add(counted.id)
      patterns.push(counted)
      counted.users++
    }
    return { kind: 'names', ids, patterns }
  }

  #enter(pattern: Pattern): Counted {
    const counted = { id: this.#nextId++, pattern, users: 0 }
    this.#byText.set(pattern.text, counted)
    this.#index.add(pattern, counted.id)
    return counted
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
    for (const counted of permission.patterns) {
      counted.users--
      if (counted.users > 0) continue
      this.#byText.delete(counted.pattern.text)
      this.#index.remove(counted.pattern, counted.id)
    }
  }
}
