// The work that nothing outside asks for: names expire, labels move after a change, refused entries are tried again, endpoints whose hook
// appeared are attached, packet events are read. All of it runs in slices of at most 2 ms with the event loop free between them, and
// every slice ends in a commit. Expiry also rests between its slices, because no one waits for it: the system soon gives a CPU to a
// process that sleeps, and makes one that works on wait.

import type { Timer } from '../core/clock.ts'
import type { DatapathEvent } from '../datapath/entries.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { Transition } from '../enforcement/transition.ts'

const SLICE_MS = 2
/** All work runs once a second, right after the second in which names expire, so that an idle daemon wakes for nothing else. */
const BEAT_MS = 1000
/** How often hooks are checked when the kernel reports no changes of them (cgroups), so that an endpoint is attached within 100 ms
 *  of appearing. Packet events are read as often, while there was one of late. */
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
  /** `time`: the time of the packet by the present wall clock. */
  readonly onEvent: (event: DatapathEvent, time: number) => void
  /** Endpoints whose hook was attached or lost. */
  readonly onHooks: (endpoints: readonly number[]) => void
  /** Called with how many more prefixes than a second ago lack labels for want of identities. Absent: not reported. */
  readonly onFallbacks?: (count: number) => void
  /** Called once a second, before refused entries are tried again. */
  readonly onBeat?: () => void
  /** Whether there are hooks whose changes the kernel does not report: cgroups. Absent: there are none. */
  readonly hasSilentHooks?: () => boolean
}

export class Housekeeping {
  readonly #in: HousekeepingOptions
  #beat: Timer | undefined
  /** The next look at hooks and events, if it comes before the next beat. */
  #next: Timer | undefined
  #hasNews = false
  #stopped = false
  #expiring = false
  #moving = false
  #fallbacks = 0

  constructor(options: HousekeepingOptions) {
    this.#in = options
  }

  start(): void {
    this.#hasNews = this.#in.core.datapath.hooks.watch(() => {
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

  /** Call after a change of configuration: moves labels slice by slice until all is realized. */
  beginTransition(): void {
    this.#in.transition.begin()
    if (!this.#moving) this.#move()
  }

  #move(): void {
    const { core, transition } = this.#in
    this.#moving = !this.#stopped && !transition.step(SLICE_MS)
    if (!this.#moving) return
    if (transition.isWaiting) transition.whenReady(() => this.#move())
    else core.clock.soon(() => this.#move())
  }

  #awaitBeat(): void {
    const { clock } = this.#in.core
    // A timer may come a fraction of a millisecond before its time, and the second must be over.
    const left = Math.ceil(BEAT_MS - (clock.now() % BEAT_MS)) + 1
    this.#beat = clock.after(left, () => {
      this.#awaitBeat()
      this.#in.onBeat?.()
      if (!this.#expiring) this.#expireSlice()
      this.#retry()
      if (this.#next === undefined) this.look()
    })
  }

  #expireSlice(): void {
    if (this.#stopped) return
    const { core } = this.#in
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

  /** Checks hooks and events, and again soon when no report of them comes. */
  look(): void {
    if (this.#stopped) return
    const events = this.#refresh()
    this.#next?.cancel()
    this.#next = undefined
    if (this.#hasNews && events === 0 && this.#in.hasSilentHooks?.() !== true) return
    this.#next = this.#in.core.clock.after(REFRESH_MS, () => this.look())
  }

  /** Returns how many events there were. */
  #refresh(): number {
    const { datapath } = this.#in.core
    const changed = datapath.hooks.refresh()
    if (changed.length > 0) this.#in.onHooks(changed)
    let events = 0
    const wall = this.#in.core.clock.wall()
    datapath.reports.drain(EVENTS_PER_LOOK, (event) => {
      events++
      this.#in.onEvent(event, wall - event.age)
    })
    return events
  }

  #retry(): void {
    const { committer, allocator } = this.#in.core
    committer.retry()
    committer.commit()
    allocator.sweep()
    const more = allocator.fallbacks - this.#fallbacks
    this.#fallbacks = allocator.fallbacks
    if (more > 0) this.#in.onFallbacks?.(more)
    this.#in.onBeat?.()
  }
}
