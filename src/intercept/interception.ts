// Interception as the daemon runs it. The daemon puts the rules in at its start and takes them out at an orderly stop, where
// the config says so. In between it follows interfaces, and looks again when nftables or the routing of TPROXY changes. Rules
// of `namegate intercept up` are kept the same way. A part that another program removed is put back, counted and logged.
// One task runs at a time, off the packet path. A failure is kept in the state, logged and tried again; DNS of intercepted
// clients stays closed meanwhile.

import type { Clock, Timer } from '../core/clock.ts'
import { messageOf } from '../core/errors.ts'
import type { Log } from '../telemetry/log.ts'
import type { InterceptChanges } from './changes.ts'
import { TABLE } from './nft-script.ts'
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
  readonly changes: InterceptChanges
  readonly clock: Clock
  readonly log: Log
}

/** From a change to the look that follows, because changes seldom come alone: where rules follow interfaces. */
const WATCH_MS = 50
/** The same, where the rules follow no interface. */
const SLOW_WATCH_MS = 1000
/** From one reading of the routing to the next. */
const ROUTING_MS = 1000
/** From one look to the next where transactions of nftables were not reported as changes: a safety net. */
const GENERATION_MS = 3000
/** From a failure to the next try, where no change comes before. */
const RETRY_MS = 5000

export class Interception {
  /** How often a part was put back that another program removed. */
  readonly counters = { repairs: 0 }
  readonly #options: InterceptionOptions
  #state: InterceptionState
  #endpoints: readonly string[] = []
  #isDue = false
  #work: Promise<void> | undefined
  /** The next look. */
  #timer: Timer | undefined
  #retry: Timer | undefined
  #routing: Timer | undefined
  #generation: Timer | undefined
  /** The routing changed, and has not been seen complete since. */
  #isRoutingDue = false
  #isStarted = false

  constructor(options: InterceptionOptions) {
    this.#options = options
    this.#state = { kind: options.plan === undefined ? 'off' : 'absent' }
  }

  get state(): InterceptionState {
    return this.#state
  }

  /** Undefined when no listener has a transparent mode. */
  get isInForce(): boolean | undefined {
    return this.#state.kind === 'off' ? undefined : this.#state.kind === 'in-force'
  }

  /**
   * When listeners are bound and policy is in force. `endpoints`: names of endpoints' interfaces (hook side
   * ingress), whether there or not. Throws UnavailableError when `on-start` cannot be had.
   */
  async start(endpoints: readonly string[]): Promise<void> {
    const { plan, onStart, alone, clock, changes } = this.#options
    if (plan === undefined) return
    this.#endpoints = endpoints
    await alone(async () => await (onStart ? this.#up(plan) : this.#look(plan)))
    this.#tell()
    this.#isStarted = true
    const watchMs = plan.tproxy.length > 0 ? WATCH_MS : SLOW_WATCH_MS
    const hear = (): void => {
      if (changes.hasChanged()) this.#beginIn(watchMs)
    }
    if (!changes.listen(hear))
      this.#timer = clock.every(watchMs, () => changes.hasChanged() && this.#begin())
    this.#generation = clock.every(GENERATION_MS, () => {
      if (changes.hasGenerationChanged()) this.#begin()
    })
    if (plan.tproxy.length > 0)
      this.#routing = clock.every(ROUTING_MS, () => {
        const isRoutingChanged = changes.hasRoutingChanged()
        if (isRoutingChanged) this.#isRoutingDue = true
        // A failure is tried again after RETRY_MS.
        if (isRoutingChanged || (this.#isRoutingDue && this.#state.kind !== 'failed')) this.#begin()
      })
  }

  /** Endpoints or links came or went. Returns at once. */
  interfacesChanged(endpoints: readonly string[]): void {
    this.#endpoints = endpoints
    if (this.#isStarted) this.#begin()
  }

  /** Another process takes over: the rules stay in force. */
  release(): void {
    if (!this.#isStarted) return
    this.#isStarted = false
    this.#options.changes.stop()
    for (const each of [this.#timer, this.#retry, this.#routing, this.#generation]) each?.cancel()
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

  /** Looks again; a call during a look causes one more look after it. */
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
          reason: messageOf(error),
        }
      }
      if (this.#state.kind !== before) this.#tell()
    }
    if (this.#state.kind === 'failed' && this.#isStarted) this.#tryAgain()
  }

  #tryAgain(): void {
    this.#retry?.cancel()
    this.#retry = this.#options.clock.after(RETRY_MS, () => this.#begin())
  }

  async #up(plan: InterceptPlan): Promise<void> {
    const { rules } = this.#options
    const endpoints = this.#endpoints
    const notes = (await rules.keep(plan, endpoints)) ?? (await rules.up(plan, endpoints))
    this.#state = { kind: 'in-force', notes }
  }

  /** Repairs our rules; puts back what another program removed where the config asks for it. */
  async #look(plan: InterceptPlan): Promise<void> {
    const { rules, onStart } = this.#options
    const found = await rules.inForce()
    if (found === undefined || found.about === '') {
      rules.clearFlags()
      this.#state = { kind: 'absent' }
      if (!onStart) return
      await this.#up(plan)
      this.#tellRepaired([`nft table inet ${TABLE}`])
    } else if (found.about === aboutOf(plan)) {
      const isRoutingDue = this.#isRoutingDue
      if (isRoutingDue) await this.#mendRouting(plan)
      await rules.update(plan, this.#endpoints, found)
      if (found.damage.length > 0) this.#tellRepaired(found.damage)
      if (isRoutingDue) await this.#lookForForeignRouting(plan)
      const notes = this.#state.kind === 'in-force' ? this.#state.notes : plan.notes
      this.#state = { kind: 'in-force', notes }
    } else {
      this.#state = { kind: 'other', about: found.about }
      if (!onStart) return
      // One daemon alone keeps interception in a network namespace, so these rules are of no other one.
      await this.#up(plan)
      this.#tellRepaired([`nft table inet ${TABLE} (of another configuration: ${found.about})`])
    }
  }

  /** Rules without their routing deliver no query. */
  async #mendRouting(plan: InterceptPlan): Promise<void> {
    const { rules, changes } = this.#options
    const missing = await rules.mendRouting(plan)
    if (missing.length > 0) this.#tellRepaired(missing)
    // A change is a difference from the last reading. That reading may show the damage, and the same damage again would be no
    // change: so the routing is complete only when nothing was missing in the reading.
    this.#isRoutingDue = missing.length > 0 || changes.hasRoutingChanged()
  }

  /** Reports routing of others by throwing UnavailableError, again and again until it is gone; never removes it. */
  async #lookForForeignRouting(plan: InterceptPlan): Promise<void> {
    const { rules } = this.#options
    try {
      await rules.lookForForeignRouting(plan)
    } catch (error) {
      this.#isRoutingDue = true
      throw error
    }
  }

  #tellRepaired(missing: readonly string[]): void {
    this.counters.repairs++
    const message = 'somebody else took away what brings queries to namegate: put back'
    this.#options.log.warn({ fault: missing.join(', '), count: missing.length }, message)
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

/** The state in one line, for `status`; undefined when no listener has a transparent mode. */
export function describeInterception({
  state,
  counters,
}: Pick<Interception, 'state' | 'counters'>): string | undefined {
  switch (state.kind) {
    case 'off':
      return undefined
    case 'absent':
      return 'no rules: nothing is redirected here; namegate intercept up'
    case 'in-force':
      return ['in force', ...repairsText(counters.repairs), ...state.notes].join('; ')
    case 'other':
      return `rules of another configuration: ${state.about}; namegate intercept up`
    case 'failed':
      return `not in force: ${state.reason}`
  }
}

function repairsText(repairs: number): readonly string[] {
  return repairs === 0 ? [] : [`put back ${repairs === 1 ? 'once' : `${repairs} times`}`]
}
