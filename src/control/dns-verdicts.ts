// May this endpoint ask this name: all DNS patterns of all endpoints in one index, and for each endpoint the
// set of patterns that permit. One look at the name answers for any endpoint; cost does not grow with the
// number of exact and leading-star patterns. Where clients choose their server, each endpoint has one such set for each
// kind of server that it asked, made when it is needed first: rules tell servers apart by identity, class and port.
// Read on the packet path: nothing is allocated for a server that was asked before.

import type { EndpointId, Identity } from '../core/ids.ts'
import type { DnsRules } from '../policy/dns-rules.ts'
import { IdList } from '../policy/id-list.ts'
import type { Pattern } from '../policy/pattern.ts'
import { PatternIndex } from '../policy/pattern-index.ts'
import type { ServerRules } from '../policy/server-rules.ts'

/** Verdicts: it may; not this name; not this server. */
export const MAY_ASK = 0
export const NAME_DENIED = 1
export const SERVER_DENIED = 2

/** A server as policy sees it. */
export interface DnsServer {
  readonly identity: Identity
  readonly addressClass: Identity
  readonly port: number
}

/** Kinds of servers remembered per endpoint; all are forgotten when there are more. */
const SERVERS_MAX = 64
/** Identities are below 2^25, classes below 2^4, ports below 2^16: a key below 2^45. */
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

interface Asker {
  readonly ofPool: Permission
  readonly rulesAt: (server: DnsServer) => ServerRules
  readonly byServer: Map<number, Permission>
}

export class DnsVerdicts {
  readonly #index = new PatternIndex()
  readonly #byText = new Map<string, Counted>()
  readonly #askers = new Map<EndpointId, Asker>()
  readonly #matched = new IdList()
  #nextId = 0

  /** `rulesAt`: what it may ask of a server that it chose itself; none is admitted without. */
  set(
    endpoint: EndpointId,
    rules: DnsRules,
    rulesAt: (server: DnsServer) => ServerRules = () => ({ kind: 'not-admitted' }),
  ): void {
    const before = this.#askers.get(endpoint)
    const ofPool = this.#permit(rules)
    this.#askers.set(endpoint, { ofPool, rulesAt, byServer: new Map() })
    this.#forget(before)
  }

  remove(endpoint: EndpointId): void {
    const before = this.#askers.get(endpoint)
    this.#askers.delete(endpoint)
    this.#forget(before)
  }

  /** Whether the endpoint may ask the lower-case wire name at `offset`; false for an endpoint without rules. */
  mayAsk(endpoint: EndpointId, wire: Uint8Array, offset: number): boolean {
    return this.judge(endpoint, wire, offset) === MAY_ASK
  }

  /** MAY_ASK or NAME_DENIED, where the configured servers are asked. */
  judge(endpoint: EndpointId, wire: Uint8Array, offset: number): number {
    const asker = this.#askers.get(endpoint)
    return asker === undefined ? NAME_DENIED : this.#verdict(asker.ofPool, wire, offset)
  }

  /** MAY_ASK, NAME_DENIED or SERVER_DENIED, where the client chose that server at that port. */
  judgeAt(
    endpoint: EndpointId,
    server: Omit<DnsServer, 'port'>,
    port: number,
    wire: Uint8Array,
    offset: number,
  ): number {
    const asker = this.#askers.get(endpoint)
    if (asker === undefined) return SERVER_DENIED
    const { identity, addressClass } = server
    const key = (identity * CLASSES + addressClass) * PORTS + port
    const permission =
      asker.byServer.get(key) ?? this.#permitAt(asker, key, { identity, addressClass, port })
    return this.#verdict(permission, wire, offset)
  }

  #verdict(permission: Permission, wire: Uint8Array, offset: number): number {
    if (permission.kind === 'not-admitted') return SERVER_DENIED
    if (permission.kind === 'no-name') return NAME_DENIED
    if (permission.kind === 'every-name') return MAY_ASK
    const matched = this.#matched
    matched.clear()
    const count = this.#index.match(wire, offset, matched)
    for (let i = 0; i < count; i++) if (permission.ids.has(matched.items[i]!)) return MAY_ASK
    return NAME_DENIED
  }

  #permitAt(asker: Asker, key: number, server: DnsServer): Permission {
    const { byServer } = asker
    if (byServer.size === SERVERS_MAX) {
      const all = [...byServer.values()]
      byServer.clear()
      for (const permission of all) this.#release(permission)
    }
    const permission = this.#permit(asker.rulesAt(server))
    byServer.set(key, permission)
    return permission
  }

  #permit(rules: ServerRules): Permission {
    if (rules.kind !== 'names') return rules
    const texts = new Map(rules.patterns.map((pattern) => [pattern.text, pattern]))
    const patterns = [...texts.values()].map((pattern) => this.#hold(pattern))
    return { kind: 'names', ids: new Set(patterns.map(({ id }) => id)), patterns }
  }

  #hold(pattern: Pattern): Counted {
    const known = this.#byText.get(pattern.text)
    if (known !== undefined) {
      known.users++
      return known
    }
    const counted = { id: this.#nextId++, pattern, users: 1 }
    this.#byText.set(pattern.text, counted)
    this.#index.add(pattern, counted.id)
    return counted
  }

  #forget(asker: Asker | undefined): void {
    if (asker === undefined) return
    this.#release(asker.ofPool)
    for (const permission of asker.byServer.values()) this.#release(permission)
  }

  #release(permission: Permission): void {
    if (permission.kind !== 'names') return
    for (const counted of permission.patterns) {
      counted.users--
      if (counted.users > 0) continue
      this.#byText.delete(counted.pattern.text)
      this.#index.remove(counted.pattern, counted.id)
    }
  }
}
