// TimedSets records elements that expire: the elements that namegate wrote, when they expire, and the elements that another
// process changed. Elements that the packet path adds are known only from the kernel's reports.

import type { Clock } from '../../../core/clock.ts'
import { shapeOf } from '../rules/layout.ts'
import type { Message } from '../netlink/message.ts'
import { encode, textOf, type Element } from './mirror.ts'
import { DESTROY_ELEMENT, NEW_ELEMENT, type Elements } from '../netlink/sets.ts'

/** The precision of a remaining time. */
const TOLERANCE_MS = 2000
const PRUNED_FROM = 1024

interface Noted {
  readonly key: Uint8Array
  /** By the clock. Infinity: the element stays. */
  readonly until: number
}

export class TimedSets {
  readonly #clock: Clock
  readonly #sets = new Map<string, Map<string, Noted>>()
  /** Elements to write again, by set and key. */
  readonly #suspects = new Map<string, { readonly name: string; readonly key: Uint8Array }>()
  /** Elements that the packet path added and another process removed. */
  readonly #taken = new Map<string, Element>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get hasChanges(): boolean {
    return this.#suspects.size > 0
  }

  /** Records that the kernel accepted these elements, or removed them. */
  note(action: 'add' | 'delete', name: string, elements: readonly Element[]): void {
    const set = this.#setOf(name)
    for (const { key, timeoutMs } of elements) {
      const text = textOf({ key })
      const until = timeoutMs === undefined ? Infinity : this.#clock.now() + timeoutMs
      if (action === 'delete') set.delete(text)
      else set.set(text, { key, until })
    }
    if (set.size < PRUNED_FROM) return
    for (const [text, { until }] of set) if (until <= this.#clock.now()) set.delete(text)
  }

  /** See `Mirror.suspect`. */
  suspect(name: string, found: Element, isThere: boolean): boolean {
    const text = `${name} ${textOf({ key: found.key })}`
    if (this.#suspects.has(text)) return true
    const wanted = this.wanted(name, found.key)
    if (isThere && wanted !== undefined && isAlike(found, wanted)) return false
    const isOfPackets = shapeOf(name).dynamic === true
    if (!isThere && wanted === undefined && !isOfPackets) return false
    this.#suspects.set(text, { name, key: found.key })
    if (!isThere && isOfPackets) this.#taken.set(text, found)
    return true
  }

  /** The wanted elements of a set that namegate writes. */
  *list(name: string): Iterable<Element> {
    for (const { key } of this.#setOf(name).values()) {
      const wanted = this.wanted(name, key)
      if (wanted !== undefined) yield wanted
    }
  }

  /** Encodes again the elements that another process changed. */
  encodeChanges(to: Message, elements: Elements): void {
    for (const { name, key } of this.#suspects.values()) {
      encode(to, elements, DESTROY_ELEMENT, name, { key })
    }
    for (const [text, { name, key }] of this.#suspects) {
      const wanted = this.#taken.get(text) ?? this.wanted(name, key)
      if (wanted !== undefined) encode(to, elements, NEW_ELEMENT, name, wanted)
    }
    elements.flush()
    this.forgetSuspects()
  }

  /** Encodes all elements that namegate wrote. */
  encodeAll(to: Message, elements: Elements): void {
    for (const name of this.#sets.keys()) {
      for (const element of this.list(name)) encode(to, elements, NEW_ELEMENT, name, element)
    }
    elements.flush()
    this.forgetSuspects()
  }

  forgetSuspects(): void {
    this.#suspects.clear()
    this.#taken.clear()
  }

  /** The wanted element at this time, with its remaining time. */
  wanted(name: string, key: Uint8Array): Element | undefined {
    const noted = this.#setOf(name).get(textOf({ key }))
    if (noted === undefined) return undefined
    if (noted.until === Infinity) return { key }
    const timeoutMs = Math.floor(noted.until - this.#clock.now())
    return timeoutMs > 0 ? { key, timeoutMs } : undefined
  }

  #setOf(name: string): Map<string, Noted> {
    let set = this.#sets.get(name)
    if (set === undefined) this.#sets.set(name, (set = new Map()))
    return set
  }
}

function isAlike({ timeoutMs: a }: Element, { timeoutMs: b }: Element): boolean {
  if (a === undefined || b === undefined) return a === b
  return Math.abs(a - b) < TOLERANCE_MS
}
