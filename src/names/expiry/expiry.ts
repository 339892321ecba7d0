// Forgetting: entries whose TTL and grace are over go, unless the datapath still sees an open connection of
// that endpoint to that address (docs/spec/semantics 5). Works in bounded steps: first due entries are set aside, then
// one pass over the connection table finds what is in use (connection-looks.ts), then those not in use are forgotten. An entry
// that an answer revived meanwhile is left alone: the answer always wins. An entry that a connection keeps waits
// nowhere and costs nothing until a later look finds that the connection ended.

import type { Clock } from '../../core/clock.ts'
import type { Datapath } from '../../datapath/datapath.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'
import { ConnectionLooks } from './connection-looks.ts'
import type { NameCache } from '../name-cache.ts'

/** How often connections are looked at while anything depends on it, in seconds. */
const LOOK_SECONDS = 5
/** Due entries set aside for one pass over the connection table. */
const ASIDE_MAX = 65_536
/** Entries looked at between two looks at the clock. */
const ENTRIES_PER_LOOK = 32

export interface ExpiryOptions {
  readonly names: NameCache
  readonly ipcache: IpCache
  readonly datapath: Pick<Datapath, 'peers'>
  readonly clock: Clock
}

export class Expiry {
  readonly #names: NameCache
  readonly #clock: Clock
  readonly #looks: ConnectionLooks
  /** Rows of entries whose time is over. */
  readonly #aside = new Int32Array(ASIDE_MAX)
  #asideCount = 0
  /** Second of the last look. */
  #lookedAt = Number.NEGATIVE_INFINITY
  #sweeping = false
  /** Whether a look has come to its end. */
  #hasLooked = false
  /** Told of an entry whose endpoint connected to its address when the TTL was over: a client that ignores TTLs. */
  onExpiredUse: (entry: number) => void = () => undefined
  #expiredUses = 0
  #forgotten = 0
  #kept = 0

  constructor(options: ExpiryOptions) {
    this.#names = options.names
    this.#clock = options.clock
    this.#looks = new ConnectionLooks({
      ...options,
      onEnd: (entry) => this.#connectionEnded(entry),
      onExpired: (entry) => this.#expiredUse(entry),
    })
    options.names.eviction.beforeEviction = () => this.#lookOnce()
  }

  /** Looks at the connection table since the start. */
  get looks(): number {
    return this.#looks.count
  }

  /** How often a connection began to an address whose name's TTL was over, by what two looks at connections show. */
  get expiredUses(): number {
    return this.#expiredUses
  }

  get forgotten(): number {
    return this.#forgotten
  }

  /** How often an open connection kept an entry whose time was over. */
  get kept(): number {
    return this.#kept
  }

  /** Works for at most about `milliseconds`; true when nothing is left to do now. */
  step(milliseconds: number): boolean {
    const until = this.#clock.now() + milliseconds
    do {
      if (!this.#advance()) return true
    } while (this.#clock.now() < until)
    return false
  }

  /** One small piece of work; false when there is none. */
  #advance(): boolean {
    if (this.#sweeping) return this.#sweep()
    if (this.#looks.isUnderWay) {
      this.#sweeping = this.#looks.step()
      this.#hasLooked ||= this.#sweeping
      return true
    }
    if (this.#setAside() && this.#asideCount < ASIDE_MAX) return true
    if (this.#asideCount === 0 && !this.#wantsLook()) return false
    this.#lookedAt = this.#names.tick()
    this.#looks.begin()
    return true
  }

  /**
   * What goes at a bound is chosen by connections, of which nothing is known before the first look: that one is made in one
   * go, where a bound is reached so early after all that was known is back.
   */
  #lookOnce(): void {
    if (this.#hasLooked || this.#names.toRestore !== undefined) return
    this.#hasLooked = true
    if (this.#sweeping) return
    if (!this.#looks.isUnderWay) {
      this.#lookedAt = this.#names.tick()
      this.#looks.begin()
    }
    while (!this.#looks.step()) continue
    this.#sweeping = true
  }

  /** Whether connections that are known may have ended, or a bound may soon ask which entries are in use. */
  #wantsLook(): boolean {
    if (this.#names.tick() < this.#lookedAt + LOOK_SECONDS) return false
    return this.#names.rows.openPeers.slots.used > 0 || this.#names.eviction.isNear
  }

  /** Takes due entries out of the wheel; false when there were none. */
  #setAside(): boolean {
    const { entries, wheel } = this.#names
    const now = this.#names.tick()
    for (let i = 0; i < ENTRIES_PER_LOOK && this.#asideCount < ASIDE_MAX; i++) {
      const entry = wheel.takeDue(now)
      if (entry === 0) return i > 0
      const due = entries.liveUntil[entry]! + entries.grace[entry]! + 1
      // Answers that prolong an entry leave it where it waits.
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
    const due = entries.liveUntil[entry]! + entries.grace[entry]! + 1
    if (due > now) {
      wheel.place(entry, due)
    } else if (entries.connected[entry] !== 0) {
      this.#kept++
    } else if (this.#looks.isBlind) {
      wheel.place(entry, now + LOOK_SECONDS)
    } else {
      this.#forgotten++
      this.#names.forget(entry)
    }
  }

  #expiredUse(entry: number): void {
    this.#expiredUses++
    this.onExpiredUse(entry)
  }

  /** What the connection kept is due again. */
  #connectionEnded(entry: number): void {
    const { entries, wheel } = this.#names
    if (wheel.has(entry)) return
    const due = entries.liveUntil[entry]! + entries.grace[entry]! + 1
    wheel.place(entry, Math.max(due, this.#names.tick()))
  }
}
