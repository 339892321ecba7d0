// Judge decides whether a query is forwarded, and whether namegate learns from its answer. Policy decides by name and
// transport. If the client chose the server (`upstreams.original-destination`), the policy on this server and the trust in
// it decide too (docs/spec/semantics 2). Judge keeps no state except its counters.

import type { EndpointId } from '../../core/ids.ts'
import { TCP, UDP, type DnsProtocol } from '../../core/protocol.ts'
import {
  MAY_ASK,
  NAME_DENIED,
  SERVER_DENIED,
  type DnsVerdicts,
} from '../../enforcement/dns-verdicts.ts'
import { MANY_LABELS, type SelectorLabels } from '../../names/labels/selector-labels.ts'
import type { ServerIdentity } from '../../enforcement/server-identity.ts'
import type { AskedServer, AskedServers } from '../upstream/asked-servers.ts'
import type { MessageBatch } from '../messages/batch.ts'
import { OF_OURS, OVER_TCP, type ClientColumns } from '../messages/client-columns.ts'

/** A result of `judge`, in addition to those of DnsVerdicts: the server is not trusted, whatever policy says. */
export const SERVER_UNTRUSTED = 3
/** A result of `judge`: policy allows the query, but `sources.then: deny` refuses every name now. */
export const SOURCES_SILENT = 5

/** Returns the reason of a verdict for the flow; '' if the kind of the flow says enough. */
export function reasonOf(verdict: number): string {
  if (verdict === SOURCES_SILENT) return 'sources-silent'
  return verdict === SERVER_DENIED || verdict === SERVER_UNTRUSTED ? 'server' : ''
}

export interface JudgeOptions {
  readonly verdicts: DnsVerdicts
  readonly selectorLabels: Pick<SelectorLabels, 'epoch' | 'matchedSet'>
  /** Returns true while every name is refused, also a name that policy allows (`sources.then: deny`). Absent: never. */
  readonly isClosed?: (() => boolean) | undefined
  /** The servers that clients can choose. Undefined if clients cannot choose. */
  readonly asked?:
    | { readonly servers: AskedServers; readonly identities: ServerIdentity }
    | undefined
}

export class Judge {
  readonly counters = {
    /** Queries to a server that policy does not allow. */
    serverDenied: 0,
    /** Queries to a server that is not trusted. */
    serverUntrusted: 0,
  }
  readonly #options: JudgeOptions

  constructor(options: JudgeOptions) {
    this.#options = options
  }

  /** The servers that clients can choose. Undefined if clients cannot choose. */
  get asked(): AskedServers | undefined {
    return this.#options.asked?.servers
  }

  /** Number of the rule that denied the last judged question. Under audit: of the rule that would have denied it (DnsVerdicts). */
  get deniedBy(): number {
    return this.#options.verdicts.deniedBy
  }

  /**
   * Judges the query in a row. `wire` is its name in lower-case wire format.
   * Returns MAY_ASK, AUDITED, NAME_DENIED, SERVER_DENIED, SERVER_UNTRUSTED or SOURCES_SILENT.
   */
  judge(endpoint: EndpointId, clients: ClientColumns, row: number, wire: Uint8Array): number {
    const { verdicts, asked } = this.#options
    const server = this.#serverOf(clients, row)
    if (server === undefined || asked === undefined) {
      return this.#unlessClosed(this.#ofPool(endpoint, clients, row, wire))
    }
    if (this.isUntrusted(clients, row)) return SERVER_UNTRUSTED
    const { identities } = asked
    identities.look(clients.families[row] === 4 ? 4 : 6, clients.askedAddresses, row * 16)
    identities.port = server.address.port
    identities.protocol = protocolOf(clients, row)
    const verdict = verdicts.judgeAt(endpoint, identities, wire, 0)
    if (verdict === SERVER_DENIED) this.counters.serverDenied++
    return this.#unlessClosed(verdict)
  }

  /** Stores the labels of the last judged name in its row, if `judge` has found them (AskedLabels). */
  noteLabels(batch: MessageBatch, row: number): void {
    const { verdicts, selectorLabels } = this.#options
    const labels = verdicts.isMatched ? selectorLabels.matchedSet() : MANY_LABELS
    batch.labels[row] = labels
    batch.labelEpochs[row] = labels === MANY_LABELS ? 0 : selectorLabels.epoch
  }

  /** Judges a query to a server of the pool. A query of namegate itself without a protocol (prewarm.ts) needs UDP or TCP allowed. */
  #ofPool(endpoint: EndpointId, clients: ClientColumns, row: number, wire: Uint8Array): number {
    const { verdicts } = this.#options
    const verdict = verdicts.judge(endpoint, protocolOf(clients, row), wire, 0)
    const isOfEither = clients.transports[row] === OF_OURS && clients.ports[row] === 0
    return isOfEither && verdict === NAME_DENIED ? verdicts.judge(endpoint, TCP, wire, 0) : verdict
  }

  #unlessClosed(verdict: number): number {
    return verdict === MAY_ASK && this.#options.isClosed?.() === true ? SOURCES_SILENT : verdict
  }

  /** Returns true if the server that a row's client asked is refused to every client, and counts the query. */
  isUntrusted(clients: ClientColumns, row: number): boolean {
    const server = this.#serverOf(clients, row)
    if (server === undefined || this.#options.asked?.servers.isRefused(server) !== true)
      return false
    this.counters.serverUntrusted++
    return true
  }

  /** Returns true if namegate learns addresses from answers of the server that a row's client asked. */
  mayTeach(clients: ClientColumns, row: number): boolean {
    return this.#serverOf(clients, row)?.kind !== 'untrusted'
  }

  /** Returns the server that the client chose, or undefined if the pool chooses. */
  #serverOf(clients: ClientColumns, row: number): AskedServer | undefined {
    const server = this.#options.asked?.servers.of(clients, row)
    return server === undefined || server.kind === 'pool' ? undefined : server
  }
}

/** Returns the protocol of a query. A query of namegate itself (OF_OURS) stores the protocol as its port; the default is UDP. */
function protocolOf({ transports, ports }: ClientColumns, row: number): DnsProtocol {
  const isTcp = transports[row] === OF_OURS ? ports[row] === TCP : transports[row] === OVER_TCP
  return isTcp ? TCP : UDP
}
