// The kinds of rows of the table: an exchange for an allowed and a refused name, over UDP and over TCP; a script over the wire; other tests
// of this repository that prove the row; or a row that is left out, with the reason.

import type { MkMessage } from '../../support/messages.ts'
import type { LocalAnswer } from '../lab/replies.ts'
import type { AskedQuery, Transport } from '../lab/upstream.ts'
import type { Mode, OwnClient, World } from '../lab/world.ts'

interface Common {
  /** The id in docs/spec/correctness. Without one there: the section and a word. */
  readonly id: string
  readonly what: string
  /** The point in which docs/spec/semantics or the repository decides otherwise than docs/spec/correctness. */
  readonly note?: string
}

/** A query with the exchange's address, for the upstream's handler. */
export interface Asking extends AskedQuery {
  /** An address that no other answer has. */
  readonly address: string
}

/**
 * 'passes': the query reached the server, and the server's first message reached the client, both unchanged except for the id.
 * 'silence': no answer, and no query forwarded. A local answer is forwarded only if it is SERVFAIL.
 */
export type Outcome = 'passes' | 'silence' | LocalAnswer | ((seen: Seen) => void)

/** A finished exchange. */
export interface Seen {
  readonly transport: Transport
  readonly query: MkMessage
  /** The octets that the client sent. */
  readonly sent: Uint8Array
  /** The octets that the client got. */
  readonly got: Uint8Array
  /** The queries at the server. */
  readonly asked: readonly AskedQuery[]
  /** The messages that the server sent. */
  readonly answered: readonly Uint8Array[]
}

export interface ExchangeRow extends Common {
  readonly kind: 'exchange'
  /** The runner sets the id. */
  readonly query: (name: readonly string[]) => MkMessage
  /** Messages of the server. Default: one answer with one A record. */
  readonly answer?: (asking: Asking) => readonly Uint8Array[]
  readonly allowed: Outcome
  /** Default: REFUSED, EDE 15. */
  readonly refused?: Outcome
  readonly over?: readonly Transport[]
  /** Whether the address of the answer to an allowed name gets the selector's label. */
  readonly teaches?: boolean
  /** The client that asks. */
  readonly client?: OwnClient
  /** The way of a message matters, not only its content. The same holds if `over` or `client` is given. */
  readonly inEveryMode?: true
}

export interface ScriptRow extends Common {
  readonly kind: 'script'
  readonly run: (world: World) => Promise<void>
  /** Leaves out other modes, for this reason. */
  readonly only?: { readonly modes: readonly Mode[]; readonly reason: string }
  /** Runs after all others, one by one: 'quiet' needs the machine for itself, 'end' removes things that others need. */
  readonly alone?: 'quiet' | 'end'
}

/** Proved by tests elsewhere, named by file and a part of their names. Those of test/kernel do not run with the table. */
export interface TestsRow extends Common {
  readonly kind: 'tests'
  readonly tests: readonly (readonly [file: string, name: string])[]
}

export interface LeftOutRow extends Common {
  readonly kind: 'left-out'
  readonly reason: string
}

export type Row = ExchangeRow | ScriptRow | TestsRow | LeftOutRow

/**
 * The mode for rows that depend only on their messages. Modes differ only in the way of messages, and in this one both addresses of an
 * answer are those of other hosts.
 */
export const MESSAGE_MODE: Mode = 'tproxy'

export function runsIn(row: ExchangeRow | ScriptRow, mode: Mode): boolean {
  if (row.kind === 'script') return row.only === undefined || row.only.modes.includes(mode)
  const depends = row.inEveryMode === true || row.over !== undefined || row.client !== undefined
  return depends || mode === MESSAGE_MODE
}

/** The answer when policy denies the query. */
export const DENIED: LocalAnswer = { rcode: 5, ede: 15 }
