// What a row of the table can be: an exchange that is made for an allowed and a refused name, over UDP and over TCP; a
// script over the wire; what other tests of this repository prove; or what is left out, and why.

import type { MkMessage } from '../../support/messages.ts'
import type { LocalAnswer } from '../lab/replies.ts'
import type { AskedQuery, Transport } from '../lab/upstream.ts'
import type { Mode, OwnClient, World } from '../lab/world.ts'

interface Common {
  /** As in docs/spec/correctness; where that has none, the section and a word. */
  readonly id: string
  readonly what: string
  /** Where docs/spec/semantics or the repository decides otherwise than docs/spec/correctness says. */
  readonly note?: string
}

/** What the upstream's handler has to work with. */
export interface Asking extends AskedQuery {
  /** An address that no other answer has. */
  readonly address: string
}

/**
 * 'passes': the query reached the server and the first message that the server sent reached the client, byte for byte
 * but for the id. 'silence': no answer and nothing forwarded. A local answer is forwarded only if it is SERVFAIL.
 */
export type Outcome = 'passes' | 'silence' | LocalAnswer | ((seen: Seen) => void)

/** An exchange that is over. */
export interface Seen {
  readonly transport: Transport
  readonly query: MkMessage
  /** The client's octets. */
  readonly sent: Uint8Array
  /** What the client got. */
  readonly got: Uint8Array
  /** As the server got it. */
  readonly asked: readonly AskedQuery[]
  /** What the server sent. */
  readonly answered: readonly Uint8Array[]
}

export interface ExchangeRow extends Common {
  readonly kind: 'exchange'
  /** `random`: 16 bits; the id is the runner's. */
  readonly query: (name: readonly string[]) => MkMessage
  /** Messages of the server; default: one answer with one A record. */
  readonly answer?: (asking: Asking) => readonly Uint8Array[]
  readonly allowed: Outcome
  /** Default: REFUSED, EDE 15. */
  readonly refused?: Outcome
  readonly over?: readonly Transport[]
  /** Whether the address of the answer to an allowed name gets the selector's label. */
  readonly teaches?: boolean
  /** Client that asks. */
  readonly client?: OwnClient
  /** How a message comes or goes matters, not only what it holds. So it does where `over` or `client` is given. */
  readonly inEveryMode?: true
}

export interface ScriptRow extends Common {
  readonly kind: 'script'
  readonly run: (world: World) => Promise<void>
  /** Other modes are left out, for this reason. */
  readonly only?: { readonly modes: readonly Mode[]; readonly reason: string }
  /** After all others, one by one: 'quiet' needs the machine for itself, 'end' takes away what others need. */
  readonly alone?: 'quiet' | 'end'
}

/** Proved by tests elsewhere, named by file and a part of their names; those of test/kernel are not run with the table. */
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
 * Where rows run that depend on their messages alone. Modes differ only in how messages come and go, and in this one both addresses of
 * an answer are those of other hosts.
 */
export const MESSAGE_MODE: Mode = 'tproxy'

export function runsIn(row: ExchangeRow | ScriptRow, mode: Mode): boolean {
  if (row.kind === 'script') return row.only === undefined || row.only.modes.includes(mode)
  const depends = row.inEveryMode === true || row.over !== undefined || row.client !== undefined
  return depends || mode === MESSAGE_MODE
}

/** Policy says no. */
export const DENIED: LocalAnswer = { rcode: 5, ede: 15 }
