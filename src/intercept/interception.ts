// Interception keeps the rules of interception in the kernel while the daemon runs. If the config says so, it installs the rules
// at the start and removes them at an orderly stop. In between it follows interfaces, and checks the rules when nftables or the
// routing of TPROXY changes. It keeps rules of `namegate intercept up` in the same way. If another program removes a part,
// Interception puts the part back, counts the repair and logs it. One task runs at a time, off the packet path. After a failure,
// Interception keeps the failure in its state, logs it and tries again. Until the repair, DNS of intercepted clients stays
// blocked.

import type { Clock, Timer } from '../core/clock.ts'
import { messageOf } from '../core/errors.ts'
import type { Log } from '../telemetry/log.ts'
import type { InterceptChanges } from './changes.ts'
import { TABLE } from './nft-script.ts'
import { intercepts, type InterceptPlan } from './plan.ts'
import type { EndpointPlaces } from './targets.ts'
import { aboutOf, type Rules } from './rules.ts'

export type InterceptionState =
  /** No listener has a transparent mode. */
  | { readonly kind: 'off' }
  /** Listeners exist but rules do not, so no query is redirected. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'in-force'; readonly notes: readonly string[] }
  /** The rules in force belong to another config. */
  | { readonly kind: 'other'; readonly about: string }
  | { readonly kind: 'failed'; readonly reason: string }

export interface InterceptionOptions {
  readonly plan: InterceptPlan | undefined
  readonly onStart: boolean
  readonly onExit: 'closed' | 'open'
  readonly rules: Rules
  /** Runs `work` while no other task on this host changes interception. */
  readonly alone: (work: () => Promise<void>) => Promise<void>
  readonly changes: InterceptChanges
  readonly clock: Clock
  readonly log: Log
}

/** Milliseconds from a change to the check, where rules follow interfaces. Changes often come in groups. */
const WATCH_MS = 50
/** Milliseconds from a change to the check, where the rules follow no interface. */
const SLOW_WATCH_MS = 1000
/** Milliseconds between two readings of the routing. */
const ROUTING_MS = 1000
/** Milliseconds between two readings of the transaction counter, a safety net for changes that were not reported. */
const GENERATION_MS = 3000
/** Milliseconds from a failure to the next try, if no change comes earlier. */
const RETRY_MS = 5000

export class Interception {
  /** How often Interception put back a part that another program had removed. */
  readonly counters = { repairs: 0 }
  readonly #options: InterceptionOptions
  #state: InterceptionState
  #endpoints: EndpointPlaces = { interfaces: [], cgroups: [] }
  #isDue = false
  #work: Promise<void> | undefined
  /** The next check. */
  #timer: Timer | undefined
  #retry: Timer | undefined
  #routing: Timer | undefined
  #generation: Timer | undefined
  /** True from a change of the routing until a check has found the routing complete. */
  #isRoutingDue = false
  #isStarted = false

  constructor(options: InterceptionOptions) {
    this.#options = options
    this.#state = { kind: options.plan === undefined ? 'off' : 'absent' }
  }

  get state(): InterceptionState {
    return this.#state
  }

  /** True while the rules are in force. Undefined if no listener has a transparent mode. */
  get isInForce(): boolean | undefined {
    return this.#state.kind === 'off' ? undefined : this.#state.kind === 'in-force'
  }

  /** True if a listener is transparent, and no TPROXY listener intercepts the DNS that arrives at an endpoint's interface. */
  misses(name: string): boolean {
    const { plan } = this.#options
    return plan !== undefined && !intercepts(plan, name)
  }

  /**
   * Starts when listeners are bound and policy is in force. Throws UnavailableError if `on-start` is set and the rules cannot be
   * installed.
   */
  async start(endpoints: EndpointPlaces): Promise<void> {
    const { plan, onStart, alone, clock, changes } = this.#options
    if (plan === undefined) return
    this.#endpoints = endpoints
    await alone(async () => await (onStart ? this.#up(plan) : this.#look(plan)))
    this.#report()
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
        // After a failure, the next try follows RETRY_MS later.
        if (isRoutingChanged || (this.#isRoutingDue && this.#state.kind !== 'failed')) this.#begin()
      })
  }

  /** The daemon calls this when endpoints, links or cgroups appear or disappear. Returns at once. */
  placesChanged(endpoints: EndpointPlaces): void {
    this.#endpoints = endpoints
    if (this.#isStarted) this.#begin()
  }

  /** Another process takes over, so the rules stay in force. */
  release(): void {
    if (!this.#isStarted) return
    this.#isStarted = false
    this.#options.changes.stop()
    for (const each of [this.#timer, this.#retry, this.#routing, this.#generation]) each?.cancel()
    this.#isDue = false
  }

  /**
   * Ends with the process, and removes the rules if they are in force and `removes` is true. An orderly stop removes them if
   * `intercept.on-exit` says so.
   */
  async stop(removes = this.#options.onExit === 'open'): Promise<void> {
    const { rules, alone, log } = this.#options
    if (!this.#isStarted) return
    this.release()
    await this.#work
    if (!removes || this.#state.kind !== 'in-force') return
    try {
      await alone(async () => void (await rules.down()))
      this.#state = { kind: 'absent' }
      log.info({}, 'interception ends: its rules are removed')
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

  /** Starts a check. A call during a check causes one more check after it. */
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
      if (this.#state.kind !== before) this.#report()
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

  /** Repairs namegate's rules. If the config asks for `on-start`, installs rules that another program removed. */
  async #look(plan: InterceptPlan): Promise<void> {
    const { rules, onStart } = this.#options
    const found = await rules.inForce()
    if (found === undefined || found.about === '') {
      rules.clearFlags()
      this.#state = { kind: 'absent' }
      if (!onStart) return
      await this.#up(plan)
      this.#reportRepaired([`nft table inet ${TABLE}`])
    } else if (found.about === aboutOf(plan)) {
      const isRoutingDue = this.#isRoutingDue
      if (isRoutingDue) await this.#mendRouting(plan)
      await rules.update(plan, this.#endpoints, found)
      if (found.damage.length > 0) this.#reportRepaired(found.damage)
      if (isRoutingDue) await this.#lookForForeignRouting(plan)
      const notes = this.#state.kind === 'in-force' ? this.#state.notes : plan.notes
      this.#state = { kind: 'in-force', notes }
    } else {
      this.#state = { kind: 'other', about: found.about }
      if (!onStart) return
      // One daemon keeps interception in a network namespace, so these rules belong to no other daemon.
      await this.#up(plan)
      this.#reportRepaired([`nft table inet ${TABLE} (of another configuration: ${found.about})`])
    }
  }

  /** Puts back missing routing, because the rules deliver no query without it. */
  async #mendRouting(plan: InterceptPlan): Promise<void> {
    const { rules, changes } = this.#options
    const missing = await rules.mendRouting(plan)
    if (missing.length > 0) this.#reportRepaired(missing)
    // `hasRoutingChanged` compares with the last reading. If that reading already shows the damage, the same damage later would
    // be no change. So the routing is complete only if nothing was missing and the reading did not change.
    this.#isRoutingDue = missing.length > 0 || changes.hasRoutingChanged()
  }

  /** Throws UnavailableError while routing of other programs is in the way. Never removes that routing. */
  async #lookForForeignRouting(plan: InterceptPlan): Promise<void> {
    const { rules } = this.#options
    try {
      await rules.lookForForeignRouting(plan)
    } catch (error) {
      this.#isRoutingDue = true
      throw error
    }
  }

  #reportRepaired(missing: readonly string[]): void {
    this.counters.repairs++
    const message = 'another program removed parts of the interception: put back'
    this.#options.log.warn({ fault: missing.join(', '), count: missing.length }, message)
  }

  #report(): void {
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

/** Returns the state in one line for `status`, or undefined if no listener has a transparent mode. */
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
