// Expiry forgets entries whose TTL and grace are over, unless the datapath still sees an open connection of that endpoint to that
// address (docs/spec/semantics 5). It works in bounded steps. Due entries are set aside first. One pass over the connection table
// then finds which of them are in use (connection-looks.ts). The others are forgotten. An entry that an answer revived meanwhile
// stays: the answer always wins. An entry that a connection keeps waits in no list until a later look finds the connection ended.

import type { Clock } from '../../core/clock.ts'
import type { Datapath } from '../../datapath/datapath.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'
import { ConnectionLooks } from './connection-looks.ts'
import type { NameCache } from '../name-cache.ts'

/** Seconds between two looks at the connections, while anything depends on them. */
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
  /** Called with an entry whose endpoint connected to its address after the TTL: a client that ignores TTLs. */
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

  /** How often a connection began after the TTL of the address's name, as far as two looks at the connections show. */
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
   * An eviction chooses by open connections, and none is known before the first look. When a bound is reached that early, and a
   * restart has brought everything back, the first look is made in one go.
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

  /** Whether open peers may have ended, or an eviction may soon ask which entries are in use. */
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

  /** The entry that the connection kept is due again. */
  #connectionEnded(entry: number): void {
    const { entries, wheel } = this.#names
    if (wheel.has(entry)) return
    const due = entries.liveUntil[entry]! + entries.grace[entry]! + 1
    wheel.place(entry, Math.max(due, this.#names.tick()))
  }
}
