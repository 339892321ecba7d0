// Table holds what the kernel's table must have, and writes it. It writes changes as one transaction or, where ports change, as up to
// three in sequence (mirror.ts). The same batch repairs elements that another process changed, and all rules if rules were changed. If
// the kernel's table is not known to be right, the whole table is written in place of the old one. Commits go to the thread. What must be
// in force at once (mode, hooks) is applied here. After a refused batch the table is in doubt.

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
import { DROPS, formsFor, type RuleForm } from '../rules/form.ts'
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
  readonly rejects?: boolean
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
  readonly forms: readonly RuleForm[]
  /** The form of the rules that the kernel takes. */
  form: RuleForm
  #isDoubtful = false
  /** True if there is no table. Its addresses are then written in slices after the table. */
  #isGone = false
  /** True if another process changed rules, or elements that this program never changes. */
  #areRulesDoubtful = false
  #strangers: readonly Stranger[] = []
  /** What the batch that the thread has contains. */
  #submitted: 'nothing' | 'changes' | 'rules' | 'all' = 'nothing'
  #repairs = 0

  constructor(options: TableOptions) {
    const { netlink, clock, prefixesMax, policyEntriesMax, onDone, rejects = false } = options
    this.forms = formsFor(rejects)
    this.form = this.forms[0] ?? DROPS
    this.socket = new Socket(netlink, onDone)
    this.timed = new TimedSets(clock)
    this.prefixes = new PrefixTable(this.mirror, prefixesMax)
    this.policies = new PolicyTable(this.mirror, policyEntriesMax)
  }

  /** How often the whole table was written because the kernel's table was wrong. */
  get repairs(): number {
    return this.#repairs
  }

  /** The message for listings, which use it between two batches. */
  get message(): Message {
    return this.#message
  }

  /** Call this when the kernel has the whole table as the mirror has it. Every later difference is a change. */
  adopt(form: RuleForm): void {
    this.form = form
    this.#settle()
    this.prefixes.addresses.adopt()
  }

  /** Call this when the kernel's table differs from the written one. `isGone`: the kernel has no table at all. */
  doubt(isGone = false): void {
    this.#isDoubtful = true
    this.#isGone = isGone
  }

  /** Call this when another process changed or added rules, or elements that this program never changes. */
  doubtRules(strangers: readonly Stranger[]): void {
    this.#areRulesDoubtful = true
    this.#strangers = strangers
  }

  /** True while the thread has a batch. */
  get isWriting(): boolean {
    return this.#submitted !== 'nothing'
  }

  /** True if rules must be written, or are being written. */
  get isBuilding(): boolean {
    const isDue = this.#isDoubtful || this.#areRulesDoubtful
    return isDue || this.#submitted === 'rules' || this.#submitted === 'all'
  }

  /** True if another batch is needed to undo all changes of other processes. */
  get hasMore(): boolean {
    return !this.#isDoubtful && this.prefixes.addresses.hasSuspects
  }

  /** True if no change of this set is on its way to the kernel. */
  isAtRest(name: string): boolean {
    this.#settle()
    if (this.isBuilding || this.mirror.isChanged(name)) return false
    return !this.isWriting || !this.mirror.isTaken(name)
  }

  /** Writes the whole table. `more`: elements that the packet path had added. */
  install(more: ReadonlyMap<string, readonly Element[]> = new Map()): Outcome {
    let outcome = this.#install(more)
    for (const form of this.forms.slice(this.forms.indexOf(this.form) + 1)) {
      if (outcome !== 'ENOENT') break
      this.form = form // the kernel lacks nflog or reject
      outcome = this.#install(more)
    }
    return outcome
  }

  /** Applies the changes before it returns. */
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

  /** Hands the changes to the thread, or the whole table if it is in doubt. `none`: there is nothing to wait for. */
  submit(): Outcome {
    this.#settle()
    if (this.#isDoubtful) {
      this.#keepMode()
      this.#encodeAll(new Map())
    } else if (!this.#encodeChanges()) return 'none'
    if (this.#message.size > this.socket.room) {
      // The batch is too long: write the whole table in several batches, before this returns.
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

  /** Break-glass mode may have changed the mode in the kernel. If there is a table, its mode stays. */
  #keepMode(): void {
    const found: Element[] = []
    const isThere = eachElement(this, 'mode', ({ key }) => found.push({ key }))
    if (!isThere) return
    this.mirror.forget('mode')
    for (const element of found) this.mirror.restore('mode', element)
  }

  /** Returns the outcome of the batch that the thread has. */
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

  /** Applies elements that expire, without the mirror. */
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
      this.#batch(() => encodeRulesAnew(to, elements, this.form, this.#strangers))
    }
    this.#batch(() => encodeChanges(to, elements, before))
    this.#batch(() => {
      encodeChanges(to, elements, change)
      prefixes.addresses.encodeChanges(to, elements)
      timed.encodeChanges(to, elements)
    })
    this.#batch(() => encodeChanges(to, elements, after))
    // An element that was added and removed between two commits needs no write.
    return to.batches > 0
  }

  /** Adds one more transaction, if `write` encodes anything. */
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
      // The kernel refuses a batch of this length, so it gets several batches. The first has the rules.
      this.#elements.flush()
      this.#message.endBatch(this.#elements.last)
      outcome ??= this.#apply()
      this.#begin()
    })
    return outcome ?? (this.#elements.last < 0 ? undefined : this.#apply())
  }

  /** Encodes the whole table as one batch. Calls `onElement` after each element. */
  #encodeAll(
    more: ReadonlyMap<string, readonly Element[]>,
    onElement: () => void = () => undefined,
  ): void {
    this.#settle()
    this.#begin()
    const [to, elements] = [this.#message, this.#elements]
    if (this.#isGone) elements.last = encodeFrame(to)
    else encodeInstall(to, elements, this.form)
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
      // The kernel fills sets of ranges somewhat later than it activates rules, so the rules come last.
      to.endBatch(elements.last)
      to.nextBatch()
      encodeRules(to, elements, this.form)
    } else this.prefixes.addresses.encodeAll(to, elements, onElement)
    if (elements.last >= 0) to.endBatch(elements.last)
  }
}
