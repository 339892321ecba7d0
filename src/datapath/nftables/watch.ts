// Notices when somebody else changed namegate's table: every transaction in the network namespace, whoever makes it, gets the
// next number. When there are more of them than ours, the table is looked at: rules by their octets, small sets as a
// whole, of the exact addresses some. Costs one question a second, and a look when others write rules.

import type { Clock } from '../../core/clock.ts'
import { eachElement } from './read-elements.ts'
import { SETS, type SetShape } from './layout.ts'
import type { Message } from './message.ts'
import type { Table } from './table.ts'
import { rulesInKernel, TRIPLES } from './written.ts'

const GET_GENERATION = 16
const GENERATION_ID = 1
const EVERY_MS = 1000
/** Exact addresses that are looked at. */
const SAMPLE = 64
/** Break glass changes it. */
const MODE = 'mode'

export class Watch {
  readonly #table: Table
  readonly #clock: Clock
  #next: number
  /** Transactions that the kernel had when ours were counted last. */
  #seen: number
  #counted: number
  /** What the rules are known by; undefined: read later, so that the start need not wait for it. */
  #rules: string | undefined

  /** The table is as it should be. `isAlone`: nobody else writes in this network namespace for now. */
  constructor(table: Table, clock: Clock, isAlone: boolean) {
    this.#table = table
    this.#clock = clock
    this.#next = clock.now() + EVERY_MS
    this.#seen = this.#generation()
    this.#counted = table.applied
    this.#rules = isAlone ? undefined : rulesInKernel(this.#table)
  }

  /** True when the table is not as we wrote it. Call while nothing is being written. */
  look(): boolean {
    if (this.#clock.now() < this.#next) return false
    this.#next = this.#clock.now() + EVERY_MS
    const [generation, applied] = [this.#generation(), this.#table.applied]
    const isOurs = ((generation - this.#seen) | 0) === applied - this.#counted
    this.#seen = generation
    this.#counted = applied
    if (isOurs && this.#rules === undefined) this.#learn()
    return !isOurs && !this.#isIntact()
  }

  /** Nobody else has written until now, nor while they were read: so they are ours. */
  #learn(): void {
    const rules = rulesInKernel(this.#table)
    if (this.#generation() === this.#seen) this.#rules = rules
  }

  #isIntact(): boolean {
    return (
      rulesInKernel(this.#table) === this.#rules &&
      SETS.every((shape) => this.#isSetIntact(shape)) &&
      this.#table.prefixes.addresses.sample(SAMPLE, (family, key) => this.#hasAddress(family, key))
    )
  }

  #isSetIntact({ name, data, timeoutMs }: SetShape): boolean {
    if (timeoutMs !== undefined || name.startsWith('exact') || name === MODE) return true
    let count = 0
    let isSame = true
    const { socket, message, mirror } = this.#table
    eachElement(socket, message, name, (element) => {
      count++
      if (data !== 'verdict') isSame &&= mirror.has(name, element)
    })
    return isSame && count === (data === 'verdict' ? TRIPLES : mirror.count(name))
  }

  #hasAddress(name: string, key: Uint8Array): boolean {
    let isThere = false
    const { socket, message } = this.#table
    eachElement(socket, message, name, () => (isThere = true), key)
    return isThere
  }

  #generation(): number {
    let generation = 0
    const { socket, message } = this.#table
    const request = (to: Message, flags: number): void => {
      to.begin(GET_GENERATION, flags, 0)
      to.end()
    }
    socket.ask(request, message, (reader, from, end) => {
      const at = reader.find(from, end, GENERATION_ID)
      if (at >= 0) generation = reader.u32(at)
    })
    return generation
  }
}
