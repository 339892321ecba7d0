// The kernel's table and what it is to hold: what changed is written as one transaction or, where ports change, as up to three that
// follow each other (mirror.ts); when the table is not known to be as it should, all of it as one in the old one's place. Commits go
// to the thread; what must be in force at once (mode, hooks) is applied here. A refused batch leaves the table in doubt.

import type { NetlinkAddon } from '../../native/nftables.ts'
import { eachElement } from './read-elements.ts'
import { encodeInstall, encodeRemoval } from './install.ts'
import { ATTRIBUTE_MAX, Message } from './message.ts'
import { encode, encodeChanges, Mirror, type Element } from './mirror.ts'
import { PolicyTable } from './policies.ts'
import { PrefixTable } from './prefixes.ts'
import { DELETE_ELEMENT, Elements, NEW_ELEMENT } from './sets.ts'
import type { Outcome } from './listing.ts'
import { Socket } from './socket.ts'

export interface TableOptions {
  readonly netlink: NetlinkAddon
  readonly prefixesMax: number
  readonly policyEntriesMax: number
  readonly onDone: () => void
}

export class Table {
  readonly socket: Socket
  readonly mirror = new Mirror()
  readonly prefixes: PrefixTable
  readonly policies: PolicyTable
  readonly #message = new Message()
  readonly #elements = new Elements(this.#message)
  #reports = true
  #isDoubtful = false
  /** Whether the thread has the whole table. */
  #isWhole = false
  /** Transactions that the thread has. */
  #submitted = 0
  #repairs = 0
  #applied = 0

  constructor({ netlink, prefixesMax, policyEntriesMax, onDone }: TableOptions) {
    this.socket = new Socket(netlink, onDone)
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

  /** What the kernel has is not what we put there. */
  doubt(): void {
    this.#isDoubtful = true
  }

  /** Writes the whole table. `more`: elements that the packet path had put there. */
  install(more: ReadonlyMap<string, readonly Element[]> = new Map()): Outcome {
    const outcome = this.#install(more)
    if (outcome !== 'ENOENT' || !this.#reports) return outcome
    // Without nflog in the kernel drops are counted but not reported.
    this.#reports = false
    return this.#install(more)
  }

  /** Transactions that the kernel took from us. */
  get applied(): number {
    return this.#applied
  }

  /** Applies what changed before it returns. */
  flush(): Outcome {
    this.#settle()
    if (!this.#isDoubtful) {
      if (!this.#encodeChanges()) return undefined
      if (this.#apply() === undefined) return undefined
    }
    const outcome = this.install()
    this.#isDoubtful = outcome !== undefined
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
      this.#isDoubtful = outcome !== undefined
      return outcome ?? 'none'
    }
    this.#isWhole = this.#isDoubtful
    this.#submitted = this.#message.batches
    return this.socket.submit(this.#message)
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
    if (done.outcome !== undefined) this.#isDoubtful = true
    else {
      this.#applied += this.#submitted
      if (this.#isWhole) {
        this.#isDoubtful = false
        this.#repairs++
      }
    }
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
    return this.#apply()
  }

  #apply(): Outcome {
    const outcome = this.socket.apply(this.#message)
    if (outcome === undefined) this.#applied += this.#message.batches
    return outcome
  }

  #settle(): void {
    this.policies.settle()
    this.prefixes.settle()
  }

  #encodeChanges(): boolean {
    const { mirror, prefixes } = this
    if (!mirror.hasChanges && !prefixes.addresses.hasChanges) return false
    const [to, elements] = [this.#message, this.#elements]
    const [before = [], change = [], after = []] = mirror.takeSteps()
    to.clear()
    this.#batch(() => encodeChanges(to, elements, before))
    this.#batch(() => {
      encodeChanges(to, elements, change)
      prefixes.addresses.encodeChanges(to, elements)
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
    encodeInstall(to, elements, this.#reports)
    this.mirror.encodeAll(to, elements, onElement)
    for (const [name, list] of more) {
      for (const each of list) {
        encode(to, elements, NEW_ELEMENT, name, each)
        onElement()
      }
    }
    elements.flush()
    this.prefixes.addresses.encodeAll(to, elements, onElement)
    if (elements.last >= 0) to.endBatch(elements.last)
  }
}
