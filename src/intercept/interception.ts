// Interception as the daemon runs it: rules put in at the start if the config says so, kept true to the interfaces
// that there are, looked at again when anyone changes nftables, and taken out at an orderly stop if the config says
// so. Also rules that `namegate intercept up` made are kept true. One thing at a time, off the packet path; what
// fails is in the state and in the log, and leaves DNS of intercepted clients closed.

import type { Clock, Timer } from '../core/clock.ts'
import type { Log } from '../telemetry/log.ts'
import type { InterceptPlan } from './plan.ts'
import { aboutOf, type Rules } from './rules.ts'

export type InterceptionState =
  /** No listener has a transparent mode. */
  | { readonly kind: 'off' }
  /** Listeners are there, rules are not: nothing is redirected to them. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'in-force'; readonly notes: readonly string[] }
  /** Rules of another config. */
  | { readonly kind: 'other'; readonly about: string }
  | { readonly kind: 'failed'; readonly reason: string }

export interface InterceptionOptions {
  readonly plan: InterceptPlan | undefined
  readonly onStart: boolean
  readonly onExit: 'closed' | 'open'
  readonly rules: Rules
  /** Runs alone among all that change interception on this host. */
  readonly alone: (work: () => Promise<void>) => Promise<void>
  readonly news: InterceptNews
  readonly clock: Clock
  readonly log: Log
}

/** What changes rules of nftables, and interfaces, in this network namespace. */
export interface InterceptNews {
  /** Whether any did since the last call. */
  hasNews(): boolean
  /** Calls while there is news; false when not all of it is heard that way. */
  listen(onNews: () => void): boolean
  stop(): void
}

export const NO_NEWS: InterceptNews = {
  hasNews: () => false,
  listen: () => true,
  stop: () => undefined,
}

/** From news to the look that it causes, since it seldom comes alone: where rules follow interfaces, */
const WATCH_MS = 50
/** and where only somebody's hand changes what is in force. */
const SLOW_WATCH_MS = 1000

export class Interception {
  readonly #options: InterceptionOptions
  #state: InterceptionState
  #endpoints: readonly string[] = []
  #isDue = false
  #work: Promise<void> | undefined
  /** A look that is to come. */
  #timer: Timer | undefined
  #isStarted = false

  constructor(options: InterceptionOptions) {
    this.#options = options
    this.#state = { kind: options.plan === undefined ? 'off' : 'absent' }
  }

  get state(): InterceptionState {
    return this.#state
  }

  /**
   * When listeners are bound and policy is in force. `endpoints`: names of endpoints' interfaces (hook side
   * ingress), whether there or not. Throws UnavailableError when `on-start` cannot be had.
   */
  async start(endpoints: readonly string[]): Promise<void> {
    const { plan, onStart, alone, clock, news } = this.#options
    if (plan === undefined) return
    this.#endpoints = endpoints
    await alone(async () => await (onStart ? this.#up(plan) : this.#look(plan)))
    this.#tell()
    this.#isStarted = true
    const watchMs = plan.tproxy.length > 0 ? WATCH_MS : SLOW_WATCH_MS
    const hear = (): void => {
      if (news.hasNews()) this.#beginIn(watchMs)
    }
    if (!news.listen(hear))
      this.#timer = clock.every(watchMs, () => news.hasNews() && this.#begin())
  }

  /** Endpoints or links came or went. Returns at once. */
  interfacesChanged(endpoints: readonly string[]): void {
    this.#endpoints = endpoints
    if (this.#isStarted) this.#begin()
  }

  /** Another process goes on: whatever is in force stays so. */
  release(): void {
    if (!this.#isStarted) return
    this.#isStarted = false
    this.#options.news.stop()
    this.#timer?.cancel()
    this.#isDue = false
  }

  /** The end of the process; an orderly one may open DNS again. */
  async stop(): Promise<void> {
    const { plan, onExit, rules, alone, log } = this.#options
    if (!this.#isStarted) return
    this.release()
    await this.#work
    if (plan === undefined || onExit === 'closed' || this.#state.kind !== 'in-force') return
    try {
      await alone(async () => void (await rules.down()))
      this.#state = { kind: 'absent' }
      log.info({}, 'interception ends, as intercept.on-exit says')
    } catch (error) {
      log.error({ error: String(error) }, 'interception could not be taken out')
    }
  }

  #beginIn(ms: number): void {
    this.#timer ??= this.#options.clock.after(ms, () => {
      this.#timer = undefined
      this.#begin()
    })
  }

  /** Looks again, once more after this when asked meanwhile. */
  #begin(): void {
    this.#isDue = true
    this.#work ??= this.#workOff().finally(() => (this.#work = undefined))
  }

  async #workOff(): Promise<void> {
    const { plan, alone } = this.#options
    if (plan === undefined) return
    while (this.#isDue) {
      this.#isDue = false
      const before = this.#state.kind
      try {
        await alone(async () => await this.#look(plan))
      } catch (error) {
        this.#state = {
          kind: 'failed',
          reason: error instanceof Error ? error.message : String(error),
        }
      }
      if (this.#state.kind !== before) this.#tell()
    }
  }

  async #up(plan: InterceptPlan): Promise<void> {
    const { rules } = this.#options
    const endpoints = this.#endpoints
    const notes = (await rules.keep(plan, endpoints)) ?? (await rules.up(plan, endpoints))
    this.#state = { kind: 'in-force', notes }
  }

  /** What is in force is made true; what somebody took out comes back if the config asks for it. */
  async #look(plan: InterceptPlan): Promise<void> {
    const { rules, onStart } = this.#options
    const found = await rules.inForce()
    if (found === undefined || found.about === '') {
      rules.clearFlags()
      this.#state = { kind: 'absent' }
      if (onStart) await this.#up(plan)
    } else if (found.about === aboutOf(plan)) {
      await rules.update(plan, this.#endpoints, found)
      const notes = this.#state.kind === 'in-force' ? this.#state.notes : plan.notes
      this.#state = { kind: 'in-force', notes }
    } else {
      this.#state = { kind: 'other', about: found.about }
    }
  }

  #tell(): void {
    const { log } = this.#options
    const state = this.#state
    switch (state.kind) {
      case 'off':
        return
      case 'in-force':
        log.info({ reason: state.notes.join('; ') || undefined }, 'queries are intercepted')
        return
      case 'absent':
        log.warn({}, 'queries are not intercepted: namegate intercept up, or intercept.on-start')
        return
      case 'other':
        log.warn(
          { reason: state.about },
          'rules of another config intercept queries: namegate intercept up puts these in their place',
        )
        return
      case 'failed':
        log.error({ error: state.reason }, 'interception could not be kept up')
    }
  }
}
