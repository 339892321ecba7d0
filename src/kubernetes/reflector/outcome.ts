// Decides what a reflector does after a request ended, or a watch brought an error. README.md has the table.

import type { ApiAnswer, ApiLoss, ApiStreamEnd } from '../connection/api-port.ts'
import { describeStatus, statusOfAnswer, type ApiStatus } from '../connection/api-status.ts'
import type { ListCause } from './reflector-counts.ts'

/** What a reflector is doing. `watch-list`: a list whose objects come as events. `pages`: a list in pages. */
export type Doing = 'watch-list' | 'pages' | 'watch'

export type Outcome =
  /** Continue the watch at once. `check`: compare the versions first, because the watch brought nothing. */
  | { readonly kind: 'resume' | 'check' }
  /** Watch-list does not work with this server: list in pages at once. */
  | { readonly kind: 'pages' }
  /** What is known is too old to continue from: list again. */
  | { readonly kind: 'relist'; readonly cause: ListCause; readonly reason: string }
  /** The kind or a right is missing: look which. */
  | { readonly kind: 'look'; readonly status: ApiStatus }
  /** Wait, and do the same again. `doubts`: the known version can be from the server's future. */
  | {
      readonly kind: 'retry'
      readonly reason: string
      readonly retryAfterMs: number | undefined
      readonly doubts: boolean
    }

/** Answers to a watch-list from servers that do not know it. Kubernetes 1.20 answers 422. */
const UNKNOWN_REQUEST: readonly number[] = [400, 405, 406, 422, 501]

/** What a watch was like. */
export interface WatchLife {
  readonly hasBrought: boolean
  readonly ageMs: number
}

/** A watch that ends in an orderly way after this time continues at once. */
export const LIVED_MS = 5_000

/** After the end of a watch or watch-list. */
export function outcomeOfEnd(
  end: ApiAnswer | ApiLoss | ApiStreamEnd,
  doing: Doing,
  { hasBrought, ageMs }: WatchLife,
): Outcome {
  if (end.kind === 'answer') return outcomeOf(statusOfAnswer(end), doing)
  if (end.kind !== 'ended') return retry(end.reason)
  if (doing === 'watch-list') return { kind: 'pages' } // the server ended before the list was complete
  if (ageMs < LIVED_MS) return retry('the API server ended the watch at once')
  return { kind: hasBrought ? 'resume' : 'check' }
}

/** After an answer that is not 200. */
export function outcomeOf(status: ApiStatus, doing: Doing): Outcome {
  const { code, retryAfterMs } = status
  const reason = describeStatus(status)
  if (code === 403 || code === 404) return { kind: 'look', status }
  if (doing === 'watch-list' && UNKNOWN_REQUEST.includes(code)) return { kind: 'pages' }
  if (doing === 'watch' && code === 410) return { kind: 'relist', cause: 'expired', reason }
  if (doing === 'watch' && (code === 400 || code === 422)) {
    return { kind: 'relist', cause: 'refused', reason }
  }
  return { kind: 'retry', reason, retryAfterMs, doubts: code === 504 }
}

/** After an ERROR event. Servers whose etcd is too old for watch-list send one inside an answer of 200. */
export function outcomeOfEvent(status: ApiStatus, doing: Doing): Outcome {
  return doing === 'watch-list' && status.code !== 429
    ? { kind: 'pages' }
    : outcomeOf(status, doing)
}

function retry(reason: string): Outcome {
  return { kind: 'retry', reason, retryAfterMs: undefined, doubts: false }
}
