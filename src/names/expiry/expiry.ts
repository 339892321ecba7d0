// Expiry removes entries whose TTL and grace are over. If the datapath still sees an open connection of the entry's endpoint to the
// entry's address, the entry stays (docs/spec/semantics 5). Expiry works in bounded steps. It first sets due entries aside. One look at
// the connection table then finds which of these entries have a connection (connection-looks.ts), and expiry removes the others. An entry
// for which an answer arrives during these steps also stays. An entry that a connection keeps leaves the wheel. When a later look finds
// that the connection has ended, the entry returns to the wheel.

import type { Clock } from '../../core/clock.ts'
import type { Datapath } from '../../datapath/datapath.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'
import { ConnectionLooks } from './connection-looks.ts'
import { ExpiredNames } from './expired-names.ts'
import type { NameCache } from '../name-cache.ts'

/** Expiry waits this many seconds before the next look at the connections, if no due entries need an earlier one. */
const LOOK_SECONDS = 5
/** At most this many due entries are set aside for one look at the connection table. */
const ASIDE_MAX = 65_536
/** Expiry handles this many entries before it reads the clock again. */
const ENTRIES_PER_LOOK = 32

export class Expiry {
  /** The entries that expired last. */
  readonly expired = new ExpiredNames()
  readonly #names: NameCache
  readonly #ipcache: IpCache
  readonly #clock: Clock
  readonly #looks: ConnectionLooks
  /** Rows of the entries that were set aside. */
  readonly #aside = new Int32Array(ASIDE_MAX)
  #asideCount = 0
  /** Tick at which the last look began. */
  #lookedAt = Number.NEGATIVE_INFINITY
  /** True while expiry decides about the entries set aside. */
  #sweeping = false
  /** True after the first complete look. */
  #hasLooked = false
  /** True during a step of a look. */
  #isLooking = false
  /** Called with an entry whose endpoint connected to the address after the TTL had ended. Such a client ignores TTLs. */
  onExpiredUse: (entry: number) => void = () => undefined
  #expiredUses = 0
  #forgotten = 0
  #kept = 0

  constructor(options: {
    readonly names: NameCache
    readonly ipcache: IpCache
    readonly datapath: Pick<Datapath, 'peers'>
    readonly clock: Clock
  }) {
    this.#names = options.names
    this.#ipcache = options.ipcache
    this.#clock = options.clock
    this.#looks = new ConnectionLooks({
      ...options,
      onEnd: (entry) => this.#connectionEnded(entry),
      onExpired: (entry) => this.#expiredUse(entry),
    })
    options.names.eviction.beforeEviction = () => this.lookOnce()
  }

  /** True after the first complete look. */
  get hasLooked(): boolean {
    return this.#hasLooked
  }

  /** How many looks at the connection table began since the start. */
  get looks(): number {
    return this.#looks.count
  }

  /** How many entries got a connection after their TTL had ended. Only connections that a look finds are counted. */
  get expiredUses(): number {
    return this.#expiredUses
  }

  get forgotten(): number {
    return this.#forgotten
  }

  /** How often an open connection kept an entry whose TTL and grace were over. */
  get kept(): number {
    return this.#kept
  }

  /** Works for about `milliseconds` at most. Returns true when there is no more work now. */
  step(milliseconds: number): boolean {
    const until = this.#clock.now() + milliseconds
    do {
      if (!this.#advance()) return true
    } while (this.#clock.now() < until)
    return false
  }

  /** Does one small piece of work. Returns false when there is none. */
  #advance(): boolean {
    if (this.#sweeping) return this.#sweep()
    if (this.#looks.isUnderWay) {
      this.lookStep()
      return true
    }
    if (this.#setAside() && this.#asideCount < ASIDE_MAX) return true
    if (this.#asideCount === 0 && !this.#wantsLook()) return false
    this.lookStep()
    return true
  }

  /** Does one small piece of a look. Begins a look if none is under way. */
  lookStep(): void {
    if (!this.#looks.isUnderWay) {
      this.#lookedAt = this.#names.tick()
      this.#looks.begin()
    }
    this.#isLooking = true
    this.#sweeping = this.#looks.step()
    this.#isLooking = false
    this.#hasLooked ||= this.#sweeping
  }

  /**
   * Makes the first look at once. An eviction chooses by open connections, and no connection is known before the first look. So an
   * eviction that comes before the first look makes this look, in one synchronous call. A look during a restart brings entries back, and
   * an eviction that this causes does not wait for the look.
   */
  lookOnce(): void {
    if (this.#isLooking) return
    while (!this.#hasLooked) this.lookStep()
  }

  /** Returns true if a look is due, and there are open peers that may have ended or an eviction that may soon need the connections. */
  #wantsLook(): boolean {
    if (this.#names.tick() < this.#lookedAt + LOOK_SECONDS) return false
    return this.#names.rows.openPeers.slots.used > 0 || this.#names.eviction.isNear
  }

  /** Takes due entries out of the wheel and sets them aside. Returns false when the wheel had none. */
  #setAside(): boolean {
    const { entries, wheel } = this.#names
    const now = this.#names.tick()
    for (let i = 0; i < ENTRIES_PER_LOOK && this.#asideCount < ASIDE_MAX; i++) {
      const entry = wheel.takeDue(now)
      if (entry === 0) return i > 0
      const due = entries.dueAt(entry)
      // An answer extends an entry without moving it in the wheel.
      if (due > now) wheel.place(entry, due)
      else this.#aside[this.#asideCount++] = entry
    }
    return true
  }

  #sweep(): boolean {
    const now = this.#names.tick()
    for (let i = 0; i < ENTRIES_PER_LOOK && this.#asideCount > 0; i++) {
      this.#decide(this.#aside[--this.#asideCount]!, now)
    }
    if (this.#asideCount === 0) this.#sweeping = false
    return true
  }

  #decide(entry: number, now: number): void {
    const { entries, wheel } = this.#names
    if (entries.mapping[entry] === 0 || wheel.has(entry)) return
    const due = entries.dueAt(entry)
    if (due > now) {
      wheel.place(entry, due)
    } else if (entries.connected[entry] !== 0) {
      this.#kept++
    } else if (this.#looks.isBlind) {
      wheel.place(entry, now + LOOK_SECONDS)
    } else {
      this.#forgotten++
      this.expired.add(this.#names, this.#ipcache.prefixes, entry)
      this.#names.forget(entry)
    }
  }

  #expiredUse(entry: number): void {
    this.#expiredUses++
    this.onExpiredUse(entry)
  }

  /** Puts an entry that a connection had kept back into the wheel. */
  #connectionEnded(entry: number): void {
    const { entries, wheel } = this.#names
    if (wheel.has(entry)) return
    const due = entries.dueAt(entry)
    wheel.place(entry, Math.max(due, this.#names.tick()))
  }
}
