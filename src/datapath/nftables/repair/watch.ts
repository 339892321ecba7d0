// Watch notices when another process changed namegate's table, and has the change undone. The kernel reports every transaction,
// element by element, and a filter drops the reports of namegate's own sockets. Watch compares each reported element with the
// wanted one. After a change of rules, chains, sets or the table itself, it reads their structure, at most ten times a second.
// After lost reports it compares everything in slices, at most once a second. It costs nothing while no other process writes to
// the table.

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
/** How many octets of reports one turn reads: some 300 elements. */
const ROOM = 32_768
const CHANGED = { map: 'rules', key: `table inet ${TABLE}`, want: 'as written', have: 'changed' }
const RULES_MS = 100
/** More than a start takes. */
const START_MS = 200
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
  readonly #options: WatchOptions
  readonly #fd: number
  readonly #changes = new Uint8Array(ROOM)
  #watching: object | number = 0
  /** The table's structure. If it is undefined, the first look after the start reads it, so that the start need not wait. */
  #known: Structure | undefined
  /** When the start is over. */
  #startsUntil = 0
  #areRulesSuspect = false
  /**
   * True if the rules alone were written again and no process has changed them since. If that did not help, everything is
   * written.
   */
  #isSecond = false
  #nextRules = 0
  #rulesTimer: Timer | undefined
  #isLost = false
  #nextComparison = 0
  #comparing: Generator<undefined> | undefined
  #isClosed = false
  /** How many comparisons of everything have finished. */
  walks = 0

  constructor(options: WatchOptions) {
    this.#options = options
    this.#fd = options.table.socket.watch()
  }

  /**
   * Call this when the kernel's table is right. `isAlone`: no other process writes in this network namespace during the start.
   */
  start(isAlone: boolean): void {
    const { table, posix, clock } = this.#options
    if (isAlone) this.#startsUntil = clock.now() + START_MS
    else this.#known = structureInKernel(table)
    this.#watching = posix.linkWatch(this.#fd, () => this.look())
  }

  close(): void {
    this.#isClosed = true
    this.#rulesTimer?.cancel()
    this.#comparing?.return(undefined)
    if (typeof this.#watching === 'object') this.#options.posix.linkUnwatch(this.#watching)
    this.#options.netlink.nlClose(this.#fd)
  }

  /** Reads the kernel's reports and notes what must be repaired. */
  look(): void {
    if (this.#isClosed) return
    const isNews = this.#read()
    const { clock, table } = this.#options
    const canRead = !this.#areRulesSuspect && clock.now() >= this.#startsUntil
    if (canRead) this.#known ??= structureInKernel(table)
    if (this.#areRulesSuspect) this.#lookAtRules()
    if (this.#isLost) this.#begin()
    if (isNews) this.#options.onSuspects()
  }

  /** Returns false if there is no report. */
  #read(): boolean {
    const got = this.#options.netlink.nlChanges(this.#fd, TABLE, this.#changes)
    if (got === LOST) {
      this.#isLost = true
      this.#suspectRules()
    }
    const reader = new Reader(this.#changes)
    reader.messages(Math.max(got, 0), (type, _flags, from, end) => {
      this.#readChange(reader, type & TYPE, from, end)
    })
    return got !== 0
  }

  #readChange(reader: Reader, type: number, from: number, end: number): void {
    const at = from + BODY
    if (type !== NEW_ELEMENT && type !== DELETE_ELEMENT) {
      this.#suspectRules()
      return
    }
    const name = setNameOf(reader, at, end)
    if (name.startsWith('verdicts')) this.#suspectRules()
    const onElement = (element: Parameters<typeof suspect>[2]): void => {
      suspect(this.#options.table, name, element, type === NEW_ELEMENT, this.#options.onFound)
    }
    readElements(reader, at, end, onElement, () => this.#suspectRules())
  }

  #suspectRules(): void {
    this.#areRulesSuspect = true
    this.#isSecond = false
  }

  #lookAtRules(): void {
    const { table, clock } = this.#options
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
    this.#options.onFound('rules', () => CHANGED)
    const isEnough = isFrame && !this.#isSecond
    if (isEnough) table.doubtRules(now.strangers)
    else table.doubt(now.frame === '')
    this.#isSecond = isEnough
    this.#options.onSuspects()
    // The next look shows whether this was enough.
    this.#lookAtRulesIn(RULES_MS)
  }

  #lookAtRulesIn(ms: number): void {
    this.#rulesTimer?.cancel()
    this.#rulesTimer = this.#options.clock.after(Math.ceil(ms), () => this.look())
  }

  /** Begins a comparison of everything, unless one is running. If reports are lost during it, another comparison follows. */
  #begin(): void {
    const { table, clock, onFound } = this.#options
    if (this.#comparing !== undefined || clock.now() < this.#nextComparison) return
    this.#isLost = false
    this.#comparing = compareAll(table, onFound)
    clock.soon(() => this.#work())
  }

  #work(): void {
    const { clock, onSuspects } = this.#options
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
