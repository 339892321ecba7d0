// What happens without anyone asking: names expire, labels move after a change, refused entries are tried
// again, endpoints whose hook appeared are attached, packet events are read. Everything in slices of at
// most 2 ms with the event loop free between them, and every slice ends in a commit.

import type { Timer } from '../core/clock.ts'
import type { DatapathEvent } from '../datapath/datapath.ts'
import type { CoreState } from './core-state.ts'
import type { Transition } from './transition.ts'

const SLICE_MS = 2
/** Hooks are looked at this often, so that an endpoint is attached within 100 ms of appearing, also where the kernel's
 *  news of interfaces is not heard or not sent (cgroups). */
const REFRESH_MS = 40
/** As often where news of hooks is heard, and nothing was dropped of late that one would want to see at once. */
const QUIET_REFRESH_MS = 500
const EXPIRY_MS = 250
/** Expiry between two commits: what it forgets costs as much again to take out of the datapath. */
const EXPIRY_PART_MS = 0.25
const RETRY_MS = 1000
const EVENTS_PER_LOOK = 512

export interface HousekeepingOptions {
  readonly core: CoreState
  readonly transition: Transition
  readonly onEvent: (event: DatapathEvent) => void
  /** Endpoints whose hook was attached or lost. */
  readonly onHooks: (endpoints: readonly number[]) => void
  /** Whether there are hooks of which no news comes: cgroups. Absent: there are none. */
  readonly hasSilentHooks?: () => boolean
}

export class Housekeeping {
  readonly #to: HousekeepingOptions
  #timers: Timer[] = []
  #next: Timer | undefined
  #stopped = false
  #expiring = false
  #moving = false

  constructor(options: HousekeepingOptions) {
    this.#to = options
  }

  start(): void {
    const { clock, datapath } = this.#to.core
    const hasNews = datapath.onLinkNews(() => {
      if (!this.#stopped) this.#refresh()
    })
    this.#look(hasNews)
    this.#timers = [
      clock.every(EXPIRY_MS, () => this.#expire()),
      clock.every(RETRY_MS, () => this.#retry()),
    ]
  }

  stop(): void {
    this.#stopped = true
    this.#next?.cancel()
    for (const timer of this.#timers) timer.cancel()
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

  #expire(): void {
    if (!this.#expiring) this.#expireSlice()
  }

  #expireSlice(): void {
    const { core } = this.#to
    const until = core.clock.now() + SLICE_MS
    let done = false
    do {
      done = core.expiry.step(EXPIRY_PART_MS)
      core.committer.commit()
    } while (!done && core.clock.now() < until)
    if (core.ipcache.hasContainersChanged) this.beginTransition()
    this.#expiring = !done && !this.#stopped
    if (this.#expiring) core.clock.soon(() => this.#expireSlice())
  }

  /** Looks at hooks and events, and again soon. */
  #look(hasNews: boolean): void {
    if (this.#stopped) return
    const events = this.#refresh()
    const isQuiet = hasNews && events === 0 && this.#to.hasSilentHooks?.() !== true
    const pause = isQuiet ? QUIET_REFRESH_MS : REFRESH_MS
    this.#next = this.#to.core.clock.after(pause, () => this.#look(hasNews))
  }

  /** Returns how many events there were. */
  #refresh(): number {
    const { datapath } = this.#to.core
    const changed = datapath.refresh()
    if (changed.length > 0) this.#to.onHooks(changed)
    let events = 0
    datapath.drainEvents(EVENTS_PER_LOOK, (event) => {
      events++
      this.#to.onEvent(event)
    })
    return events
  }

  #retry(): void {
    const { committer, allocator } = this.#to.core
    committer.retry()
    committer.commit()
    allocator.sweep()
  }
}
