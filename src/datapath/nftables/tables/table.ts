// The kernel's table and what it is to hold: what changed is written as one transaction or, where ports change, as up to three that
// follow each other (mirror.ts); elements that somebody else changed go with them, and so do all rules when those were. When the
// table is not known to be as it should, all of it is written as one in the old one's place. Commits go to the thread; what must
// be in force at once (mode, hooks) is applied here. A refused batch leaves the table in doubt.

import type { Clock } from '../../../core/clock.ts'
import type { NetlinkAddon } from '../../../native/netfilter/nftables.ts'
import { eachElement } from '../netlink/read-elements.ts'
import {
  encodeFrame,
  encodeInstall,
  encodeRemoval,
  encodeRules,
  encodeRulesAnew,
  type Stranger,
} from '../rules/install.ts'
import { ATTRIBUTE_MAX, Message } from '../netlink/message.ts'
import { encode, encodeChanges, Mirror, type Element } from './mirror.ts'
import { PolicyTable } from './policies.ts'
import { PrefixTable } from './prefixes.ts'
import { DELETE_ELEMENT, Elements, NEW_ELEMENT } from '../netlink/sets.ts'
import type { Outcome } from '../netlink/listing.ts'
import { Socket } from '../netlink/socket.ts'
import { TimedSets } from './timed.ts'

export interface TableOptions {
  readonly netlink: NetlinkAddon
  readonly clock: Clock
  readonly prefixesMax: number
  readonly policyEntriesMax: number
  readonly onDone: () => void
}

export class Table {
  readonly socket: Socket
  readonly mirror = new Mirror()
  readonly prefixes: PrefixTable
  readonly policies: PolicyTable
  readonly timed: TimedSets
  readonly #message = new Message()
  readonly #elements = new Elements(this.#message)
  #reports = true
  #isDoubtful = false
  /** There is no table: its addresses are written in slices behind it. */
  #isGone = false
  /** Somebody else changed rules or what never changes. */
  #areRulesDoubtful = false
  #strangers: readonly Stranger[] = []
  /** What the thread has. */
  #submitted: 'nothing' | 'changes' | 'rules' | 'all' = 'nothing'
  #repairs = 0

  constructor({ netlink, clock, prefixesMax, policyEntriesMax, onDone }: TableOptions) {
    this.socket = new Socket(netlink, onDone)
    this.timed = new TimedSets(clock)
    this.prefixes = new PrefixTable(this.mirror, prefixesMax)
    this.policies = new PolicyTable(this.mirror, policyEntriesMax)
  }

  /** How often the whole table was written because it was not as it should be. */
  get repairs(): number {
    return this.#repairs
  }

  /** Whether this kernel reports drops. */
  get reports(): boolean {
    return this.#reports
  }

  /** For listings, which use it between two batches. */
  get message(): Message {
    return this.#message
  }

  /** The kernel has the whole table, of which the mirror knows; what is wanted otherwise is a change. */
  adopt(reports: boolean): void {
    this.#reports = reports
    this.#settle()
    this.prefixes.addresses.adopt()
  }

  /** What the kernel has is not what we put there; `isGone`: it has no table at all. */
  doubt(isGone = false): void {
    this.#isDoubtful = true
    this.#isGone = isGone
  }

  /** Somebody else changed rules or elements that never change, or put in these. */
  doubtRules(strangers: readonly Stranger[]): void {
    this.#areRulesDoubtful = true
    this.#strangers = strangers
  }

  /** Whether the thread has something. */
  get isWriting(): boolean {
    return this.#submitted !== 'nothing'
  }

  /** Whether rules are to be written, or are being written. */
  get isBuilding(): boolean {
    const isDue = this.#isDoubtful || this.#areRulesDoubtful
    return isDue || this.#submitted === 'rules' || this.#submitted === 'all'
  }

  /** Whether the next batch leaves something that somebody else changed. */
  get hasMore(): boolean {
    return !this.#isDoubtful && this.prefixes.addresses.hasSuspects
  }

  /** Whether nothing of a set is on its way to the kernel. */
  isAtRest(name: string): boolean {
    this.#settle()
    if (this.isBuilding || this.mirror.isChanged(name)) return false
    return !this.isWriting || !this.mirror.isTaken(name)
  }

  /** Writes the whole table. `more`: elements that the packet path had put there. */
  install(more: ReadonlyMap<string, readonly Element[]> = new Map()): Outcome {
    const outcome = this.#install(more)
    if (outcome !== 'ENOENT' || !this.#reports) return outcome
    // Without nflog in the kernel drops are counted but not reported.
    this.#reports = false
    return this.#install(more)
  }

  /** Applies what changed before it returns. */
  flush(): Outcome {
    this.#settle()
    if (!this.#isDoubtful) {
      if (!this.#encodeChanges()) return undefined
      this.#areRulesDoubtful = false
      if (this.#apply() === undefined) return undefined
    }
    const outcome = this.install()
    this.#installed(outcome)
    this.#repairs++
    return outcome
  }

  /** Hands what changed to the thread, or the whole table when it is in doubt; `none` when there is nothing to wait for. */
  submit(): Outcome {
    this.#settle()
    if (this.#isDoubtful) {
      this.#keepMode()
      this.#encodeAll(new Map())
    } else if (!this.#encodeChanges()) return 'none'
    if (this.#message.size > this.socket.room) {
      // Longer than one batch may be: the whole table in several, here and now.
      const outcome = this.install()
      this.#installed(outcome)
      return outcome ?? 'none'
    }
    const outcome = this.socket.submit(this.#message)
    const what = this.#isDoubtful ? 'all' : this.#areRulesDoubtful ? 'rules' : 'changes'
    this.#submitted = outcome === undefined ? what : 'nothing'
    this.#areRulesDoubtful = false
    return outcome
  }

  /** Break glass may have changed the mode behind our back: if there is a table, its mode counts. */
  #keepMode(): void {
    const found: Element[] = []
    const isThere = eachElement(this.socket, this.#message, 'mode', ({ key }) =>
      found.push({ key }),
    )
    if (!isThere) return
    this.mirror.forget('mode')
    for (const element of found) this.mirror.restore('mode', element)
  }

  /** What came of the batch that the thread has. */
  take(wait: boolean): { readonly outcome: Outcome } | 'busy' {
    const done = this.socket.take(wait)
    if (done === 'busy') return done
    if (done.outcome !== undefined) this.doubt()
    else if (this.#submitted === 'all') {
      this.#installed(undefined)
      this.#repairs++
    }
    this.#submitted = 'nothing'
    return done
  }

  remove(): Outcome {
    this.#message.beginBatch()
    this.#message.endBatch(encodeRemoval(this.#message))
    return this.#apply()
  }

  /** Applies single elements beside the mirror: those that go by themselves. */
  applyTimed(action: 'add' | 'delete', name: string, elements: readonly Element[]): Outcome {
    if (elements.length === 0) return undefined
    const number = action === 'add' ? NEW_ELEMENT : DELETE_ELEMENT
    this.#message.beginBatch()
    this.#elements.last = -1
    for (const each of elements) encode(this.#message, this.#elements, number, name, each)
    this.#elements.flush()
    this.#message.endBatch(this.#elements.last)
    const outcome = this.#apply()
    if (outcome === undefined || action === 'delete') this.timed.note(action, name, elements)
    return outcome
  }

  #installed(outcome: Outcome): void {
    this.#isDoubtful = outcome !== undefined
    this.#isGone = this.#areRulesDoubtful = false
  }

  #apply(): Outcome {
    return this.socket.apply(this.#message)
  }

  #settle(): void {
    this.policies.settle()
    this.prefixes.settle()
  }

  #encodeChanges(): boolean {
    const { mirror, prefixes, timed } = this
    const isAny = mirror.hasChanges || prefixes.addresses.hasChanges || timed.hasChanges
    if (!isAny && !this.#areRulesDoubtful) return false
    const [to, elements] = [this.#message, this.#elements]
    const [before = [], change = [], after = []] = mirror.takeSteps()
    to.clear()
    if (this.#areRulesDoubtful) {
      this.#batch(() => encodeRulesAnew(to, elements, this.#reports, this.#strangers))
    }
    this.#batch(() => encodeChanges(to, elements, before))
    this.#batch(() => {
      encodeChanges(to, elements, change)
      prefixes.addresses.encodeChanges(to, elements)
      timed.encodeChanges(to, elements)
    })
    this.#batch(() => encodeChanges(to, elements, after))
    // What came and went between two commits is nothing.
    return to.batches > 0
  }

  /** One more transaction, if there is anything in it. */
  #batch(write: () => void): void {
    const at = this.#message.nextBatch()
    this.#elements.last = -1
    write()
    if (this.#elements.last < 0) this.#message.dropBatch(at)
    else this.#message.endBatch(this.#elements.last)
  }

  #begin(): void {
    this.#message.beginBatch()
    this.#elements.last = -1
  }

  #install(more: ReadonlyMap<string, readonly Element[]>): Outcome {
    let outcome: Outcome
    this.#encodeAll(more, () => {
      if (this.#message.size < this.socket.room - ATTRIBUTE_MAX) return
      // A kernel that takes no batch that is so long gets several, first of all the rules.
      this.#elements.flush()
      this.#message.endBatch(this.#elements.last)
      outcome ??= this.#apply()
      this.#begin()
    })
    return outcome ?? (this.#elements.last < 0 ? undefined : this.#apply())
  }

  /** The whole table as one batch; `onElement` after each element that it has. */
  #encodeAll(
    more: ReadonlyMap<string, readonly Element[]>,
    onElement: () => void = () => undefined,
  ): void {
    this.#settle()
    this.#begin()
    const [to, elements] = [this.#message, this.#elements]
    if (this.#isGone) elements.last = encodeFrame(to)
    else encodeInstall(to, elements, this.#reports)
    this.mirror.encodeAll(to, elements, onElement)
    for (const [name, list] of more) {
      for (const each of list) {
        encode(to, elements, NEW_ELEMENT, name, each)
        onElement()
      }
    }
    elements.flush()
    this.timed.encodeAll(to, elements)
    if (this.#isGone) {
      this.prefixes.addresses.suspectAll()
      this.prefixes.addresses.encodeChanges(to, elements)
      // The kernel fills sets of ranges a little later than it puts rules in force: these come behind.
      to.endBatch(elements.last)
      to.nextBatch()
      encodeRules(to, elements, this.#reports)
    } else this.prefixes.addresses.encodeAll(to, elements, onElement)
    if (elements.last >= 0) to.endBatch(elements.last)
  }
}
