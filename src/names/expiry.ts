// Forgetting: pairs whose TTL and grace are over go, unless the datapath still sees an open connection of
// that endpoint to that address (SEMANTICS 5). Works in bounded steps: first due pairs are set aside, then
// one pass over the connection table marks what is in use, then the unmarked ones are forgotten. A pair
// that an answer revived meanwhile is left alone: the answer always wins.

import type { Clock } from '../core/clock.ts'
import type { Datapath, PeerScan } from '../datapath/datapath.ts'
import type { IpCache } from '../ipcache/ipcache.ts'
import type { NameCache } from './name-cache.ts'

/** After how many seconds a pair that a connection keeps is looked at again. */
const RECHECK_SECONDS = 5
/** Due pairs set aside for one pass over the connection table. */
const ASIDE_MAX = 65_536
/** Connections looked at in one go. */
const CONNECTIONS_PER_STEP = 1024
/** Pairs looked at between two looks at the clock. */
const PAIRS_PER_LOOK = 32

export class Expiry {
  readonly #names: NameCache
  readonly #ipcache: IpCache
  readonly #datapath: Pick<Datapath, 'scanPeers'>
  readonly #clock: Clock
  /** Rows of pairs whose time is over. */
  readonly #aside = new Int32Array(ASIDE_MAX)
  #asideCount = 0
  #scan: PeerScan | undefined
  #scanNumber = 0
  #sweeping = false
  #forgotten = 0
  #kept = 0

  constructor(options: {
    readonly names: NameCache
    readonly ipcache: IpCache
    readonly datapath: Pick<Datapath, 'scanPeers'>
    readonly clock: Clock
  }) {
    this.#names = options.names
    this.#ipcache = options.ipcache
    this.#datapath = options.datapath
    this.#clock = options.clock
  }

  /** Number of the last complete pass, for `NameCache.stateOf`. */
  get scanNumber(): number {
    return this.#scanNumber
  }

  get forgotten(): number {
    return this.#forgotten
  }

  /** How often an open connection kept a pair. */
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
    if (this.#scan !== undefined) return this.#look(this.#scan)
    if (this.#setAside() && this.#asideCount < ASIDE_MAX) return true
    if (this.#asideCount === 0) return false
    this.#scanNumber = (this.#scanNumber % 255) + 1
    this.#scan = this.#datapath.scanPeers()
    return true
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

  #look(scan: PeerScan): boolean {
    const { mappings, pairs } = this.#names
    const done = scan.next(CONNECTIONS_PER_STEP, (endpoint, family, peer) => {
      const row = this.#ipcache.prefixes.find(family, peer, 0, family === 4 ? 32 : 128)
      if (row === 0) return
      for (let m = mappings.firstOfPrefix[row]!; m !== 0; m = mappings.nextOfPrefix[m]!) {
        const pair = pairs.find(m, endpoint)
        if (pair !== 0) pairs.seen[pair] = this.#scanNumber
      }
    })
    if (done) {
      this.#scan = undefined
      this.#sweeping = true
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
    if (pairs.mapping[pair] === 0) return
    const due = pairs.liveUntil[pair]! + pairs.grace[pair]! + 1
    if (due > now) {
      wheel.place(pair, due)
    } else if (pairs.seen[pair] === this.#scanNumber) {
      this.#kept++
      wheel.place(pair, now + RECHECK_SECONDS)
    } else {
      this.#forgotten++
      this.#names.forget(pair)
    }
  }
}
