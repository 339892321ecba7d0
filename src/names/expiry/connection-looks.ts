// Looks at the datapath's connection table for the open peers of each endpoint. A peer that opened or ended since the look before
// is passed on to the entries of that endpoint and address. Both work in bounded steps, because hundreds of thousands of names can
// lead to one address. Each entry hears of a change once, not at every look.

import type { PeerScan } from '../../datapath/abilities.ts'
import type { Datapath } from '../../datapath/datapath.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'
import type { NameCache } from '../name-cache.ts'

/** Connections, openPeers or names looked at in one go. */
const CONNECTIONS_PER_STEP = 256
const PEERS_PER_STEP = 1024
const NAMES_PER_STEP = 64
/** Looks are numbered 1..LOOKS. */
const LOOKS = 255

/** A peer whose change is being passed on to its entries. */
interface Report {
  readonly endpoint: number
  readonly connected: boolean
  /** The next name on the address. */
  mapping: number
}

export interface ConnectionLooksOptions {
  readonly names: NameCache
  readonly ipcache: IpCache
  readonly datapath: Pick<Datapath, 'peers'>
  /** An entry's connection is found to have ended. */
  readonly onEnd: (entry: number) => void
  /** A connection to an entry's address began when its TTL was over for certain: the look before was later and saw none. */
  readonly onExpired: (entry: number) => void
}

export class ConnectionLooks {
  readonly #in: ConnectionLooksOptions
  /** Pairs of numbers, endpoint and row of the address: peers that the look found newly open. */
  readonly #begun: number[] = []
  #scan: PeerScan | undefined
  #report: Report | undefined
  #number = 0
  /** The next contact to be looked at when the scan is at its end; 0 before. */
  #nextPeer = 0
  /** Ticks at which this look and the one before began. */
  #began = Number.NEGATIVE_INFINITY
  #beganBefore = Number.NEGATIVE_INFINITY
  #underWay = false
  #blind = false
  #count = 0

  constructor(options: ConnectionLooksOptions) {
    this.#in = options
    options.names.rows.onMappingGone = (mapping, next) => {
      if (this.#report?.mapping === mapping) this.#report.mapping = next
    }
  }

  /** Looks begun since the start. */
  get count(): number {
    return this.#count
  }

  get isUnderWay(): boolean {
    return this.#underWay
  }

  /** Whether the last look found more than there is room to know. */
  get isBlind(): boolean {
    return this.#blind
  }

  begin(): void {
    this.#number = (this.#number % LOOKS) + 1
    this.#count++
    this.#beganBefore = this.#began
    this.#began = this.#in.names.tick()
    this.#blind = false
    this.#nextPeer = 0
    this.#underWay = true
    this.#scan = this.#in.datapath.peers.scan()
  }

  /** One small piece of a look that is under way; true when it is at its end. */
  step(): boolean {
    if (this.#report !== undefined) this.#pass(this.#report)
    else if (this.#begun.length > 0) this.#passNext()
    else if (this.#scan !== undefined) this.#read(this.#scan)
    else if (this.#endPeers()) this.#underWay = false
    return !this.#underWay
  }

  #read(scan: PeerScan): void {
    const { ipcache, names } = this.#in
    const { openPeers } = names.rows
    const done = scan.next(CONNECTIONS_PER_STEP, (endpoint, family, peer) => {
      const row = ipcache.prefixes.find(family, peer, 0, family === 4 ? 32 : 128)
      if (row === 0 || names.mappings.firstOfPrefix[row] === 0) return
      const found = openPeers.note(endpoint, row, this.#number)
      if (found === 'new') this.#begun.push(endpoint, row)
      else if (found === 'full') this.#blind = true
    })
    if (!done) return
    this.#scan = undefined
    this.#nextPeer = 1
  }

  /** OpenPeers that the look did not find are over; true when all were looked at. */
  #endPeers(): boolean {
    const { openPeers } = this.#in.names.rows
    for (let i = 0; i < PEERS_PER_STEP; i++) {
      const row = this.#nextPeer
      if (row > openPeers.slots.high) return true
      this.#nextPeer++
      if (!openPeers.isOver(row, this.#number)) continue
      const endpoint = openPeers.endpoint[row]!
      const prefix = openPeers.prefix[row]!
      openPeers.end(row)
      this.#begin(endpoint, prefix, false)
      return false
    }
    return false
  }

  #passNext(): void {
    const prefix = this.#begun.pop() ?? 0
    this.#begin(this.#begun.pop() ?? 0, prefix, true)
  }

  #begin(endpoint: number, prefix: number, connected: boolean): void {
    const mapping = this.#in.names.mappings.firstOfPrefix[prefix]!
    this.#report = { endpoint, connected, mapping }
  }

  #pass(report: Report): void {
    const { names, onEnd, onExpired } = this.#in
    const { mappings, entries } = names
    const now = names.tick()
    for (let i = 0; i < NAMES_PER_STEP && report.mapping !== 0; i++) {
      const entry = entries.find(report.mapping, report.endpoint)
      report.mapping = mappings.nextOfPrefix[report.mapping]!
      if (entry === 0 || !names.rows.setConnected(entry, report.connected, now)) continue
      if (!report.connected) onEnd(entry)
      else if (entries.liveUntil[entry]! < this.#beganBefore) onExpired(entry)
    }
    if (report.mapping === 0) this.#report = undefined
  }
}
