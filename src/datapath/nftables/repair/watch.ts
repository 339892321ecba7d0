// Notices when another process changed namegate's table, and has the change undone. The kernel reports every transaction, element by element;
// reports of our own are left out there. Each reported element is compared with the wanted one. After a change of rules, chains, sets or the
// table itself, their structure is read, at most ten times a second. After lost reports everything is compared in slices, at most once a
// second. Costs nothing while no other process writes to the table.

import type { Clock, Timer } from '../../../core/clock.ts'
import type { Posix } from '../../../native/native.ts'
import type { NetlinkAddon } from '../../../native/netfilter/nftables.ts'
import { suspect, type OnFound } from './suspect.ts'
import { TABLE } from '../rules/layout.ts'
import { compareAll } from './compare.ts'
import { BODY, Reader } from '../netlink/reader.ts'
import { readElements, setNameOf } from '../netlink/read-elements.ts'
import { structureInKernel, type Structure } from '../rules/structure.ts'
import type { Table } from '../tables/table.ts'

const LOST = -105
/** Octets of reports that one turn of the event loop reads: some 300 elements. */
const ROOM = 32_768
const CHANGED = { map: 'rules', key: `table inet ${TABLE}`, want: 'as written', have: 'changed' }
const RULES_MS = 100
const COMPARE_MS = 1000
const SLICE_MS = 1
const NEW_ELEMENT = 12
const DELETE_ELEMENT = 14
const TYPE = 0xff

export interface WatchOptions {
  readonly netlink: NetlinkAddon
  readonly posix: Posix
  readonly table: Table
  readonly clock: Clock
  readonly onFound: OnFound
  /** Called when there are elements to write. */
  readonly onSuspects: () => void
}

export class Watch {
  readonly #to: WatchOptions
  readonly #fd: number
  readonly #news = new Uint8Array(ROOM)
  #watching: object | number = 0
  /** The table's structure; undefined: the first look reads it, so that the start need not wait. */
  #known: Structure | undefined
  #areRulesSuspect = false
  /** Rules alone were written anew, and nobody has changed them since: when that did not help, everything is written. */
  #isSecond = false
  #nextRules = 0
  #rulesTimer: Timer | undefined
  #isLost = false
  #nextComparison = 0
  #comparing: Generator<undefined> | undefined
  #isClosed = false
  /** Comparisons of everything that came to their end. */
  walks = 0

  constructor(options: WatchOptions) {
    this.#to = options
    this.#fd = options.table.socket.watch()
  }

  /** The table is as it should be. `isAlone`: no other process writes in this network namespace for now. */
  start(isAlone: boolean): void {
    const { table, posix } = this.#to
    if (!isAlone) this.#known = structureInKernel(table)
    this.#watching = posix.linkWatch(this.#fd, () => this.look())
  }

  close(): void {
    this.#isClosed = true
    this.#rulesTimer?.cancel()
    this.#comparing?.return(undefined)
    if (typeof this.#watching === 'object') this.#to.posix.linkUnwatch(this.#watching)
    this.#to.netlink.nlClose(this.#fd)
  }

  /** Reads what the kernel told and notes what is to be put right. */
  look(): void {
    if (this.#isClosed) return
    const isNews = this.#read()
    if (this.#known === undefined && !this.#areRulesSuspect) {
      this.#known = structureInKernel(this.#to.table)
    }
    if (this.#areRulesSuspect) this.#lookAtRules()
    if (this.#isLost) this.#begin()
    if (isNews) this.#to.onSuspects()
  }

  /** False when there is nothing. */
  #read(): boolean {
    const got = this.#to.netlink.nlNews(this.#fd, TABLE, this.#news)
    if (got === LOST) {
      this.#isLost = true
      this.#suspectRules()
    }
    const reader = new Reader(this.#news)
    reader.messages(Math.max(got, 0), (type, _flags, from, end) => {
      this.#hear(reader, type & TYPE, from, end)
    })
    return got !== 0
  }

  #hear(reader: Reader, type: number, from: number, end: number): void {
    const at = from + BODY
    if (type !== NEW_ELEMENT && type !== DELETE_ELEMENT) {
      this.#suspectRules()
      return
    }
    const name = setNameOf(reader, at, end)
    if (name.startsWith('verdicts')) this.#suspectRules()
    const onElement = (element: Parameters<typeof suspect>[2]): void => {
      suspect(this.#to.table, name, element, type === NEW_ELEMENT, this.#to.onFound)
    }
    readElements(reader, at, end, onElement, () => this.#suspectRules())
  }

  #suspectRules(): void {
    this.#areRulesSuspect = true
    this.#isSecond = false
  }

  #lookAtRules(): void {
    const { table, clock } = this.#to
    const wait = this.#nextRules - clock.now()
    if (wait > 0 || table.isBuilding) {
      this.#lookAtRulesIn(Math.max(wait, 1))
      return
    }
    this.#nextRules = clock.now() + RULES_MS
    const now = structureInKernel(table)
    const isFrame = now.frame === this.#known?.frame
    if (isFrame && now.rules === this.#known?.rules) {
      this.#areRulesSuspect = this.#isSecond = false
      return
    }
    this.#to.onFound('rules', () => CHANGED)
    const isEnough = isFrame && !this.#isSecond
    if (isEnough) table.doubtRules(now.strangers)
    else table.doubt(now.frame === '')
    this.#isSecond = isEnough
    this.#to.onSuspects()
    // Whether that was enough is seen then.
    this.#lookAtRulesIn(RULES_MS)
  }

  #lookAtRulesIn(ms: number): void {
    this.#rulesTimer?.cancel()
    this.#rulesTimer = this.#to.clock.after(Math.ceil(ms), () => this.look())
  }

  /** Begins a comparison of everything, unless one is under way. Reports that are lost meanwhile cause another. */
  #begin(): void {
    const { table, clock, onFound } = this.#to
    if (this.#comparing !== undefined || clock.now() < this.#nextComparison) return
    this.#isLost = false
    this.#comparing = compareAll(table, onFound)
    clock.soon(() => this.#work())
  }

  #work(): void {
    const { clock, onSuspects } = this.#to
    if (this.#isClosed || this.#comparing === undefined) return
    const until = clock.now() + SLICE_MS
    let isMore = true
    do isMore = this.#comparing.next().done !== true
    while (isMore && clock.now() < until)
    if (isMore) {
      clock.soon(() => this.#work())
      return
    }
    this.walks++
    this.#comparing = undefined
    this.#nextComparison = clock.now() + COMPARE_MS
    onSuspects()
    if (this.#isLost) clock.after(COMPARE_MS, () => this.look())
  }
}
