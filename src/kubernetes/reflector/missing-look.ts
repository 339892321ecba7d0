// Finds out if a kind or a right is missing, after the server answered 403 or 404. A server that starts gives the same answers: for some
// seconds Kubernetes 1.20 answers 403 to every node, and then 404 to kinds of CRDs. So a kind or a right counts as missing only if the server
// refuses the request after it has said that it is ready.

import type { Clock } from '../../core/clock.ts'
import type { RandomPool } from '../../core/random.ts'
import type { ApiAnswer, ApiLoss, ApiPort, ApiRequest } from '../connection/api-port.ts'
import { describeEnd, describeStatus, type ApiStatus } from '../connection/api-status.ts'
import { SlowLooks } from './backoff.ts'
import type { CollectionState } from './collection-events.ts'
import type { Target } from './collections.ts'
import { findMissing, type Missing, type Verb } from './discovery.ts'

/** Kubernetes lets everyone read this, but a cluster can change it. */
const READY_PATH = '/readyz'
/** A server that does not say if it is ready counts as ready after this time. A starting server says it earlier. */
export const UNSAID_MS = 30_000

export type Found =
  /** `waitMs`: the time until the next request. */
  | ({ readonly kind: 'missing'; readonly waitMs: number } & Missing)
  /** The server has become ready: make the request again. */
  | { readonly kind: 'again' }
  /** Wait, and make the request again. */
  | { readonly kind: 'unknown'; readonly reason: string }

export interface MissingLookOptions {
  readonly api: ApiPort
  readonly clock: Clock
  readonly random: RandomPool
  readonly target: Target
}

export class MissingLook {
  readonly #options: MissingLookOptions
  readonly #looks = new SlowLooks()
  /** True if the server was ready before the request that it refused last. */
  #wasReady = false
  /** Since when the server does not say if it is ready. */
  #unsaidSince: number | undefined

  constructor(options: MissingLookOptions) {
    this.#options = options
  }

  /** Notes that the kind and the right are there. */
  isThere(): void {
    this.#looks.reset()
    this.forget()
  }

  /** The next refusal needs a new proof. */
  forget(): void {
    this.#wasReady = false
  }

  /** Begins a look after the server has refused `verb`. A state that is known already needs no proof. */
  begin(
    status: ApiStatus,
    verb: Verb,
    known: CollectionState,
    done: (found: Found) => void,
  ): ApiRequest {
    const { api, target, random } = this.#options
    const isProven = (state: CollectionState): boolean => this.#wasReady || state === known
    let request = findMissing(api, target, status, verb, (missing) => {
      if (missing === undefined) return done({ kind: 'unknown', reason: describeStatus(status) })
      if (isProven(missing.state)) {
        this.forget()
        return done({ kind: 'missing', waitMs: this.#looks.next(random), ...missing })
      }
      request = api.get(READY_PATH, (end) => done(this.#readiness(end)))
    })
    return { cancel: () => request.cancel() }
  }

  #readiness(end: ApiAnswer | ApiLoss): Found {
    const code = end.kind === 'answer' ? end.code : 0
    if (code === 200 || this.#isUnsaid(code)) {
      this.#wasReady = true
      this.#unsaidSince = undefined
      return { kind: 'again' }
    }
    if (this.#unsaidSince !== undefined) {
      return { kind: 'unknown', reason: 'the API server does not say if it is ready' }
    }
    const reason = code === 500 ? 'the API server is not ready yet' : describeEnd(end)
    return { kind: 'unknown', reason }
  }

  /** True if the server has not said for long if it is ready. */
  #isUnsaid(code: number): boolean {
    const now = this.#options.clock.now()
    if (code !== 401 && code !== 403 && code !== 404) this.#unsaidSince = undefined
    else this.#unsaidSince ??= now
    return this.#unsaidSince !== undefined && now - this.#unsaidSince >= UNSAID_MS
  }
}
