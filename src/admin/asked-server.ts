// Says what the server of a question means to the daemon. The trust in the server decides beside policy, and only where endpoints can choose
// their server; elsewhere the configured servers answer.

import { formatSocketAddress } from '../core/socket-address.ts'
import type { Question } from '../explain/explanation.ts'
import type { AdminState } from './state.ts'

export interface AskedOfServer {
  /** The question as policy judges it. */
  readonly question: Question
  readonly notes: readonly string[]
  /** Why the daemon refuses the query, whatever policy and audit say. Undefined if policy decides. */
  readonly refusal?: string
}

/** Returns how the daemon treats a question. */
export function askedOfServer(
  { asked }: Pick<AdminState, 'asked'>,
  question: Question,
): AskedOfServer {
  if (question.kind !== 'ask' || question.server === undefined) return { question, notes: [] }
  const { server, ...rest } = question
  const { address, port } = server
  if (asked === undefined) {
    const off = 'upstreams.original-destination is off: the configured servers answer'
    return { question: rest, notes: [`${off}, and policy does not judge the server`] }
  }
  const text = formatSocketAddress({ ...address, port })
  const why = 'it is not in upstreams.trusted (if empty: upstreams.servers)'
  switch (asked.trustIn(address, port)) {
    case 'pool':
      return {
        question: rest,
        notes: [`${text} is namegate itself: the configured servers answer`],
      }
    case 'trusted':
      return { question, notes: [] }
    case 'passed':
      return {
        question,
        notes: [
          `namegate learns nothing from answers of ${text}: ${why}, and upstreams.untrusted is pass`,
        ],
      }
    case 'refused':
      return {
        question,
        notes: [],
        refusal: `${text} is refused: ${why}, and upstreams.untrusted is refuse`,
      }
  }
}
