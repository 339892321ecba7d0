// ConnectionLooks reads the datapath's connection table to find the open peers of each endpoint. If a peer opened or ended since the look
// before, ConnectionLooks updates the entries of that endpoint and address. During a restart a look brings back the saved entries of the
// peers. The reading and the updates are done in bounded steps, because hundreds of thousands of names can lead to one address. An entry
// is updated only when its peer changes, and not at every look.

import type { PeerScan } from '../../datapath/abilities.ts'
import type { Datapath } from '../../datapath/datapath.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'
import type { NameCache } from '../name-cache.ts'

/** One step reads at most this many connections. */
const CONNECTIONS_PER_STEP = 256
/** One step checks at most this many open peers. */
const PEERS_PER_STEP = 1024
/** One step updates the entries of at most this many names of an address. */
const NAMES_PER_STEP = 64
/** Looks are numbered from 1 to this number, and then from 1 again. */
const LOOKS = 255

/** A peer that opened or ended, while its entries are updated. */
interface Report {
  readonly endpoint: number
  readonly connected: boolean
  /** The next mapping of the address to update, 0 after the last one. */
  mapping: number
}

export interface ConnectionLooksOptions {
  readonly names: NameCache
  readonly ipcache: IpCache
  readonly datapath: Pick<Datapath, 'peers'>
  /** Called when a look finds that the last connection of an entry has ended. */
  readonly onEnd: (entry: number) => void
  /**
   * Called when a connection to an entry's address certainly began after the entry's TTL had ended: the look before began after the TTL
   * and found no connection.
   */
  readonly onExpired: (entry: number) => void
}

export class ConnectionLooks {
  readonly #options: ConnectionLooksOptions
  /** The peers that this look found newly open. Each peer is two numbers: the endpoint, and the IPCache row of the address. */
  readonly #begun: number[] = []
  #scan: PeerScan | undefined
  #report: Report | undefined
  #number = 0
  /** The next row of the open peers to check after the scan. 0 while the scan runs. */
  #nextPeer = 0
  /** Tick at which this look began. */
  #began = Number.NEGATIVE_INFINITY
  /** Tick at which the look before this one began. */
  #beganBefore = Number.NEGATIVE_INFINITY
  #underWay = false
  #blind = false
  #count = 0

  constructor(options: ConnectionLooksOptions) {
    this.#options = options
    options.names.rows.onMappingGone = (mapping, next) => {
      if (this.#report?.mapping === mapping) this.#report.mapping = next
    }
  }

  /** How many looks began since the start. */
  get count(): number {
    return this.#count
  }

  get isUnderWay(): boolean {
    return this.#underWay
  }

  /** True when the newest look found more open peers than the table has rows for. */
  get isBlind(): boolean {
    return this.#blind
  }

  begin(): void {
    this.#number = (this.#number % LOOKS) + 1
    this.#count++
    this.#beganBefore = this.#began
    this.#began = this.#options.names.tick()
    this.#blind = false
    this.#nextPeer = 0
    this.#underWay = true
    this.#scan = this.#options.datapath.peers.scan()
  }

  /** Does one small piece of the look that `begin` began. Returns true when the look is complete. */
  step(): boolean {
    if (this.#report !== undefined) this.#pass(this.#report)
    else if (this.#begun.length > 0) this.#passNext()
    else if (this.#scan !== undefined) this.#read(this.#scan)
    else if (this.#endPeers()) this.#underWay = false
    return !this.#underWay
  }

  #read(scan: PeerScan): void {
    const { ipcache, names } = this.#options
    const { openPeers } = names.rows
    const done = scan.next(CONNECTIONS_PER_STEP, (endpoint, family, peer) => {
      names.toRestore?.claim(family, peer, 0)
      const row = ipcache.prefixes.find(family, peer, 0, family === 4 ? 32 : 128)
      if (row === 0 || names.mappings.firstOfPrefix[row] === 0) return
      const found = openPeers.note(endpoint, row, this.#number)
      if (found === 'full') this.#blind = true
      if (found !== 'new') return
      if (names.toRestore === undefined) this.#begun.push(endpoint, row)
      else this.#passNow(endpoint, row)
    })
    if (!done) return
    this.#scan = undefined
    this.#nextPeer = 1
  }

  /** Ends the next open peer that the look did not find. Returns true when all open peers were checked. */
  #endPeers(): boolean {
    const { openPeers } = this.#options.names.rows
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

  /** The entries that the next peer brings back can cause an eviction. So the entries of this peer are updated before. */
  #passNow(endpoint: number, prefix: number): void {
    this.#begin(endpoint, prefix, true)
    while (this.#report !== undefined) this.#pass(this.#report)
  }

  #passNext(): void {
    const prefix = this.#begun.pop() ?? 0
    this.#begin(this.#begun.pop() ?? 0, prefix, true)
  }

  #begin(endpoint: number, prefix: number, connected: boolean): void {
    const mapping = this.#options.names.mappings.firstOfPrefix[prefix]!
    this.#report = { endpoint, connected, mapping }
  }

  #pass(report: Report): void {
    const { names, onEnd, onExpired } = this.#options
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
