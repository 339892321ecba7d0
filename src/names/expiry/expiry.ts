// Forgetting: pairs whose TTL and grace are over go, unless the datapath still sees an open connection of
// that endpoint to that address (docs/spec/semantics 5). Works in bounded steps: first due pairs are set aside, then
// one pass over the connection table finds what is in use (connection-looks.ts), then those not in use are forgotten. A pair
// that an answer revived meanwhile is left alone: the answer always wins. A pair that a connection keeps waits
// nowhere and costs nothing until a later look finds that the connection ended.

import type { Clock } from '../../core/clock.ts'
import type { Datapath } from '../../datapath/datapath.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'
import { ConnectionLooks } from './connection-looks.ts'
import type { NameCache } from '../name-cache.ts'

/** How often connections are looked at while anything depends on it, in seconds. */
const LOOK_SECONDS = 5
/** Due pairs set aside for one pass over the connection table. */
const ASIDE_MAX = 65_536
/** Pairs looked at between two looks at the clock. */
const PAIRS_PER_LOOK = 32

export interface ExpiryOptions {
  readonly names: NameCache
  readonly ipcache: IpCache
  readonly datapath: Pick<Datapath, 'scanPeers'>
  readonly clock: Clock
}

export class Expiry {
  readonly #names: NameCache
  readonly #clock: Clock
  readonly #looks: ConnectionLooks
  /** Rows of pairs whose time is over. */
  readonly #aside = new Int32Array(ASIDE_MAX)
  #asideCount = 0
  /** Second of the last look. */
  #lookedAt = Number.NEGATIVE_INFINITY
  #sweeping = false
  /** Whether a look has come to its end. */
  #hasLooked = false
  /** Told of a pair whose endpoint connected to its address when the TTL was over: a client that ignores TTLs. */
  onExpiredUse: (pair: number) => void = () => undefined
  #expiredUses = 0
  #forgotten = 0
  #kept = 0

  constructor(options: ExpiryOptions) {
    this.#names = options.names
    this.#clock = options.clock
    this.#looks = new ConnectionLooks({
      ...options,
      onEnd: (pair) => this.#connectionEnded(pair),
      onExpired: (pair) => this.#expiredUse(pair),
    })
    options.names.room.beforeEviction = () => this.#lookOnce()
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

  /** How often an open connection kept a pair whose time was over. */
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

  /** Whether connections that are known may have ended, or a bound may soon ask which pairs are in use. */
  #wantsLook(): boolean {
    if (this.#names.tick() < this.#lookedAt + LOOK_SECONDS) return false
    return this.#names.rows.contacts.slots.used > 0 || this.#names.room.isNear
  }

  /** Takes due pairs out of the wheel; false when there were none. */
  #setAside(): boolean {
    const { pairs, wheel } = this.#names
    const now = this.#names.tick()
    for (let i = 0; i < PAIRS_PER_LOOK && this.#asideCount < ASIDE_MAX; i++) {
      const pair = wheel.takeDue(now)
      if (pair === 0) return i > 0
      const due = pairs.liveUntil[pair]! + pairs.grace[pair]! + 1
      // Answers that prolong a pair leave it where it waits.
      if (due > now) wheel.place(pair, due)
      else this.#aside[this.#asideCount++] = pair
    }
    return true
  }

  #sweep(): boolean {
    const now = this.#names.tick()
    for (let i = 0; i < PAIRS_PER_LOOK && this.#asideCount > 0; i++) {
      this.#decide(this.#aside[--this.#asideCount]!, now)
    }
    if (this.#asideCount === 0) this.#sweeping = false
    return true
  }

  #decide(pair: number, now: number): void {
    const { pairs, wheel } = this.#names
    if (pairs.mapping[pair] === 0 || wheel.has(pair)) return
    const due = pairs.liveUntil[pair]! + pairs.grace[pair]! + 1
    if (due > now) {
      wheel.place(pair, due)
    } else if (pairs.connected[pair] !== 0) {
      this.#kept++
    } else if (this.#looks.isBlind) {
      wheel.place(pair, now + LOOK_SECONDS)
    } else {
      this.#forgotten++
      this.#names.forget(pair)
    }
  }

  #expiredUse(pair: number): void {
    this.#expiredUses++
    this.onExpiredUse(pair)
  }

  /** What the connection kept is due again. */
  #connectionEnded(pair: number): void {
    const { pairs, wheel } = this.#names
    if (wheel.has(pair)) return
    const due = pairs.liveUntil[pair]! + pairs.grace[pair]! + 1
    wheel.place(pair, Math.max(due, this.#names.tick()))
  }
}
