// `GET /v1/status?realized=N`: returns the status when the datapath enforces revision N of the policies completely, or when the time is
// over. `realized=wanted` is the revision that is wanted when the request comes. The check runs every LOOK_MS, for a minute at
// most unless `timeout=` (milliseconds) says otherwise, also when the client has gone.

import { statusView } from './views/status.ts'
import type { AdminState } from './state.ts'

export type WaitAnswer =
  | { readonly kind: 'ok'; readonly value: object }
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
