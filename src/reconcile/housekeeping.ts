// Housekeeping does the work that no outside event causes. It expires names, updates labels after a change, tries refused entries again,
// attaches endpoints whose hook appeared, and reads packet events. It works in slices of at most 2 ms. The event loop is free between two
// slices. A slice that changes something ends with a commit. Expiry also sleeps between its slices, because no query waits for it, and
// because the system gives a CPU sooner to a process that has slept.

import type { Timer } from '../core/clock.ts'
import type { DatapathEvent } from '../datapath/entries.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { Transition } from '../enforcement/transition.ts'

const SLICE_MS = 2
/** All work runs once a second, just after a second of `Clock.now()` ended, when names expire. An idle daemon wakes for nothing else. */
const BEAT_MS = 1000
/**
 * How often hooks are checked if the kernel does not report their changes (cgroups). So an endpoint is attached within 100 ms after its
 * hook appeared. Packet events are read at the same interval while the last read found events.
 */
const REFRESH_MS = 40
const EXPIRY_SLICE_MS = 1
/** How long expiry sleeps between two slices: the shortest time of a timer. */
const EXPIRY_REST_MS = 1
/** How long expiry works before a commit. The commit, which removes the expired entries from the datapath, takes about as long again. */
const EXPIRY_PART_MS = 0.25
const EVENTS_PER_LOOK = 512

export interface HousekeepingOptions {
  readonly core: CoreState
  readonly transition: Transition
  /** Called for each packet event. `time`: the time of the packet in wall-clock milliseconds. */
  readonly onEvent: (event: DatapathEvent, time: number) => void
  /** Called with the endpoints whose hook was attached or lost. */
  readonly onHooks: (endpoints: readonly number[]) => void
  /** Called with how many times a label set got a fallback identity in the last second. Absent: not reported. */
  readonly onFallbacks?: (count: number) => void
  /** Called at the beginning and at the end of the work of each second. */
  readonly onBeat?: () => void
  /** Called when a transition has ended, so that every change is in force. */
  readonly onInForce?: () => void
  /** True if some hooks are cgroups, whose changes the kernel does not report. Absent: there are none. */
  readonly hasSilentHooks?: () => boolean
}

export class Housekeeping {
  readonly #options: HousekeepingOptions
  #beat: Timer | undefined
  /** The next check of hooks and events, if it comes before the next second. */
  #next: Timer | undefined
  #hasNews = false
  #stopped = false
  #expiring = false
  #moving = false
  #fallbacks = 0

  constructor(options: HousekeepingOptions) {
    this.#options = options
  }

  start(): void {
    this.#hasNews = this.#options.core.datapath.hooks.watch(() => {
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

  /** Call this after a change of configuration. Runs the transition in slices until everything is in force. */
  beginTransition(): void {
    this.#options.transition.begin()
    if (!this.#moving) this.#move()
  }

  #move(): void {
    const { core, transition, onInForce } = this.#options
    if (this.#stopped) return
    this.#moving = !transition.step(SLICE_MS)
    if (!this.#moving) return onInForce?.()
    if (transition.isWaiting) transition.whenReady(() => this.#move())
    else core.clock.soon(() => this.#move())
  }

  #awaitBeat(): void {
    const { clock } = this.#options.core
    // A timer can end a fraction of a millisecond too early, and the second must be over.
    const left = Math.ceil(BEAT_MS - (clock.now() % BEAT_MS)) + 1
    this.#beat = clock.after(left, () => {
      this.#awaitBeat()
      this.#options.onBeat?.()
      if (!this.#expiring) this.#expireSlice()
      this.#retry()
      if (this.#next === undefined) this.look()
    })
  }

  #expireSlice(): void {
    if (this.#stopped) return
    const { core } = this.#options
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

  /** Checks hooks and events. Checks again soon if there were events, or if the kernel does not report changes of hooks. */
  look(): void {
    if (this.#stopped) return
    const events = this.#refresh()
    this.#next?.cancel()
    this.#next = undefined
    if (this.#hasNews && events === 0 && this.#options.hasSilentHooks?.() !== true) return
    this.#next = this.#options.core.clock.after(REFRESH_MS, () => this.look())
  }

  /** Returns how many events there were. */
  #refresh(): number {
    const { datapath } = this.#options.core
    const changed = datapath.hooks.refresh()
    if (changed.length > 0) this.#options.onHooks(changed)
    let events = 0
    const wall = this.#options.core.clock.wall()
    datapath.reports.drain(EVENTS_PER_LOOK, (event) => {
      events++
      this.#options.onEvent(event, wall - event.age)
    })
    return events
  }

  #retry(): void {
    const { committer, allocator } = this.#options.core
    committer.retry()
    committer.commit()
    allocator.sweep()
    const more = allocator.fallbacks - this.#fallbacks
    this.#fallbacks = allocator.fallbacks
    if (more > 0) this.#options.onFallbacks?.(more)
    this.#options.onBeat?.()
  }
}
