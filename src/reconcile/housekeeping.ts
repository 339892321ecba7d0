// What happens without anyone asking: names expire, labels move after a change, refused entries are tried
// again, endpoints whose hook appeared are attached, packet events are read. Everything in slices of at
// most 2 ms with the event loop free between them, and every slice ends in a commit. Expiry, which nobody waits for, rests
// between its slices as well: who sleeps gets a CPU soon where others want it too, who works on waits behind them.

import type { Timer } from '../core/clock.ts'
import type { DatapathEvent } from '../datapath/datapath.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { Transition } from '../enforcement/transition.ts'

const SLICE_MS = 2
/** Everything has its turn once a second, right after the second in which names expire: an idle daemon wakes for nothing else. */
const BEAT_MS = 1000
/** Hooks are looked at this often, so that an endpoint is attached within 100 ms of appearing, where the kernel's news of
 *  interfaces is not heard or not sent (cgroups); and packet events, where there was one of late. */
const REFRESH_MS = 40
const EXPIRY_SLICE_MS = 1
/** The least that a timer waits. */
const EXPIRY_REST_MS = 1
/** Expiry between two commits: what it forgets costs as much again to take out of the datapath. */
const EXPIRY_PART_MS = 0.25
const EVENTS_PER_LOOK = 512

export interface HousekeepingOptions {
  readonly core: CoreState
  readonly transition: Transition
  /** `time`: of the packet, by the wall clock as it is set now. */
  readonly onEvent: (event: DatapathEvent, time: number) => void
  /** Endpoints whose hook was attached or lost. */
  readonly onHooks: (endpoints: readonly number[]) => void
  /** So many more prefixes than a second ago got fewer labels than they should for want of identities. Absent: nobody is told. */
  readonly onFallbacks?: (count: number) => void
  /** Done once a second, before what was refused is tried again. */
  readonly onBeat?: () => void
  /** Whether there are hooks of which no news comes: cgroups. Absent: there are none. */
  readonly hasSilentHooks?: () => boolean
}

export class Housekeeping {
  readonly #to: HousekeepingOptions
  #beat: Timer | undefined
  /** The next look at hooks and events, if it comes before the next beat. */
  #next: Timer | undefined
  #hasNews = false
  #stopped = false
  #expiring = false
  #moving = false
  #fallbacks = 0

  constructor(options: HousekeepingOptions) {
    this.#to = options
  }

  start(): void {
    this.#hasNews = this.#to.core.datapath.hooks.watch(() => {
      if (!this.#stopped) this.#refresh()
    })
    this.look()
    this.#awaitBeat()
  }

  stop(): void {
    this.#stopped = true
    this.#next?.cancel()
    this.#beat?.cancel()
  }

  /** Configuration changed: moves labels slice by slice until all is realized. */
  beginTransition(): void {
    this.#to.transition.begin()
    if (!this.#moving) this.#move()
  }

  #move(): void {
    const { core, transition } = this.#to
    this.#moving = !this.#stopped && !transition.step(SLICE_MS)
    if (!this.#moving) return
    if (transition.isWaiting) transition.whenReady(() => this.#move())
    else core.clock.soon(() => this.#move())
  }

  #awaitBeat(): void {
    const { clock } = this.#to.core
    // A timer may come a fraction of a millisecond before its time, and the second must be over.
    const left = Math.ceil(BEAT_MS - (clock.now() % BEAT_MS)) + 1
    this.#beat = clock.after(left, () => {
      this.#awaitBeat()
      this.#to.onBeat?.()
      if (!this.#expiring) this.#expireSlice()
      this.#retry()
      if (this.#next === undefined) this.look()
    })
  }

  #expireSlice(): void {
    if (this.#stopped) return
    const { core } = this.#to
    const until = core.clock.now() + EXPIRY_SLICE_MS
    let done = false
    do {
      done = core.expiry.step(EXPIRY_PART_MS)
      core.committer.commit()
    } while (!done && core.clock.now() < until)
    if (core.ipcache.hasContainersChanged) this.beginTransition()
    this.#expiring = !done && !this.#stopped
    if (this.#expiring) core.clock.after(EXPIRY_REST_MS, () => this.#expireSlice())
  }

  /** Looks at hooks and events; where that is the only way to know of them, again soon. */
  look(): void {
    if (this.#stopped) return
    const events = this.#refresh()
    this.#next?.cancel()
    this.#next = undefined
    if (this.#hasNews && events === 0 && this.#to.hasSilentHooks?.() !== true) return
    this.#next = this.#to.core.clock.after(REFRESH_MS, () => this.look())
  }

  /** Returns how many events there were. */
  #refresh(): number {
    const { datapath } = this.#to.core
    const changed = datapath.hooks.refresh()
    if (changed.length > 0) this.#to.onHooks(changed)
    let events = 0
    const wall = this.#to.core.clock.wall()
    datapath.reports.drain(EVENTS_PER_LOOK, (event) => {
      events++
      this.#to.onEvent(event, wall - event.age)
    })
    return events
  }

  #retry(): void {
    const { committer, allocator } = this.#to.core
    committer.retry()
    committer.commit()
    allocator.sweep()
    const more = allocator.fallbacks - this.#fallbacks
    this.#fallbacks = allocator.fallbacks
    if (more > 0) this.#to.onFallbacks?.(more)
    this.#to.onBeat?.()
  }
}
