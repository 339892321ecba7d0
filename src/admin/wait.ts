// Answers `GET /v1/status?realized=N`: returns the status when the datapath enforces revision N of the policies completely, or when the
// time is over. `realized=wanted` means the revision that is wanted when the request arrives. The time is a minute, or `timeout=`
// (milliseconds). The revision is checked every LOOK_MS until the time is over, also after the client has closed the connection.

import { statusView } from './views/status.ts'
import type { StatusShape } from './document/shapes.ts'
import type { AdminState } from './state.ts'

export interface WaitedStatus extends StatusShape {
  /** The revision for which the answer waited. */
  readonly waitedFor: number
}

export type WaitAnswer =
  | { readonly kind: 'ok'; readonly value: WaitedStatus }
  | { readonly kind: 'bad'; readonly reason: string }

const LOOK_MS = 20
const TIMEOUT_MS = 60_000
const TIMEOUT_MS_MAX = 3_600_000

export async function waitRealized(state: AdminState, query: URLSearchParams): Promise<WaitAnswer> {
  const wanted = query.get('realized') ?? ''
  const revision = wanted === 'wanted' ? state.policies.revision : numberIn(wanted)
  if (revision === undefined) return bad('realized: expected a number, or wanted')
  const timeout = numberIn(query.get('timeout') ?? String(TIMEOUT_MS))
  if (timeout === undefined || timeout > TIMEOUT_MS_MAX) {
    return bad(`timeout: expected milliseconds, at most ${TIMEOUT_MS_MAX}`)
  }
  const { clock, transition } = state
  const until = clock.now() + timeout
  while (transition.realizedRevision < revision && clock.now() < until) {
    await new Promise<void>((resolve) => void clock.after(LOOK_MS, resolve))
  }
  return { kind: 'ok', value: { ...statusView(state), waitedFor: revision } }
}

function numberIn(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

function bad(reason: string): WaitAnswer {
  return { kind: 'bad', reason }
}
