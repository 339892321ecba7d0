// What the values of the fields `verdict` and `kind` of a flow mean, for people. `flows --verdict` takes each of these words.

import type { FlowKind } from './flow-kinds.ts'

export const VERDICT_WORDS = {
  allow: 'queries that policy allows',
  deny: 'queries and packets that were refused',
  audit:
    'queries and packets that policy denies, and that audit let pass: the kinds audited and audit',
  error: 'queries that failed for another reason than policy',
  event: 'events without a query or packet',
} as const

export const KIND_WORDS: Readonly<Record<FlowKind, string>> = {
  forwarded: 'allow: namegate sent the query to a server',
  answered: 'allow: a server answered the query',
  denied: 'deny: policy denies the name, or the server that was asked',
  audited: 'audit: a query that policy denies',
  'unknown-client': 'deny: no endpoint has the address that sent the query',
  'interface-mismatch': "deny: the query did not come in by the endpoint's interface",
  'not-ready': 'error: namegate was not ready when the query came',
  malformed: 'error: namegate cannot read the query',
  overloaded: 'error: too many queries were under way',
  'upstream-failed': 'error: no server answered the query',
  drop: 'deny: a packet that was dropped',
  audit: 'audit: a packet that policy denies',
  'policy-lost': 'event: an endpoint lost its last policy',
  'expired-use': 'event: an endpoint connected to an address after the TTL of its name',
}

const DENIED_WORDS: ReadonlyMap<string, string> = new Map([
  ['server', 'the asked server is refused, not the name'],
  [
    'sources-silent',
    'policy allows the name, but every name is refused while sources are silent (sources.then: deny)',
  ],
])

/** Why addresses of an answer stay closed, by the outcome of the answer. */
const OUTCOME_WORDS: ReadonlyMap<string, string> = new Map([
  ['degraded', 'an address is guarded, or a bound was reached: it opens less or nothing'],
  ['held-out', 'the kernel refused an entry, or did not confirm it in time'],
])

/** Returns the outcome of an answer, with what it means if addresses stay closed. */
export function outcomeWords(outcome: string): string {
  const why = OUTCOME_WORDS.get(outcome)
  return why === undefined ? outcome : `${outcome} (${why})`
}

/** Why an answer with the address of a packet opened nothing (names/guard.ts). */
export const GUARDED = 'guarded, so no name opens it'

/** Returns the `reason` of a denied query as a sentence without a full stop. */
export function deniedWords(reason: string): string {
  return DENIED_WORDS.get(reason) ?? reason
}

/** Returns one indented line for each word, with its meaning: first the verdicts, then the kinds. */
export function verdictLines(): string {
  const words = Object.entries({ ...VERDICT_WORDS, ...KIND_WORDS, audit: VERDICT_WORDS.audit })
  return words.map(([word, meaning]) => `  ${word.padEnd(18)}  ${meaning}`).join('\n')
}
