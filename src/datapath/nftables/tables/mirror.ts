// Mirror records the elements that namegate put into the kernel's sets, and the changes since the last write. It holds sets with
// few elements as objects. The exact addresses, of which there can be a million, are in addresses.ts.
//
// A changed element is removed and added in one transaction, so no packet meets a gap. The set `policies` leads into the set
// `ports`, and the kernel switches `ports` later than the rest of a transaction. So changes of `ports` can take up to three
// transactions (takeSteps).

import { shapeOf, widthOf } from '../rules/layout.ts'
import { DELETE_ELEMENT, DESTROY_ELEMENT, NEW_ELEMENT, type Elements } from '../netlink/sets.ts'
import type { Message } from '../netlink/message.ts'

export interface Element {
  readonly key: Uint8Array
  /** The last key of the element's range. */
  readonly keyEnd?: Uint8Array
  readonly data?: Uint8Array
  /** The element expires after this time. Only for sets that allow it. */
  readonly timeoutMs?: number
  /** True if the element marks the end of a range, in a set of single ranges. */
  readonly isEnd?: boolean
}

export interface Change {
  readonly name: string
  /** The element that the kernel has. */
  readonly before: Element | undefined
  after: Element | undefined
  /** Set if another process changed the element with this key, so that the kernel's element is unknown. */
  suspect?: Element
}

/**
 * `policies` leads into this set. It is a set of concatenated ranges, so packets see a new element some hundred microseconds
 * late.
 */
const LED_TO = 'ports'

export class Mirror {
  readonly #sets = new Map<string, Map<string, Element>>()
  #changes = new Map<string, Change>()
  /** How often a set was changed. */
  readonly #versions = new Map<string, number>()
  /** The sets of the changes that were taken last. */
  #taken: ReadonlySet<string> = new Set()

  get hasChanges(): boolean {
    return this.#changes.size > 0
  }

  put(name: string, element: Element): void {
    const text = textOf(element)
    const set = this.#setOf(name)
    const before = set.get(text)
    if (before !== undefined && sameData(before, element)) return
    set.set(text, element)
    this.#note(name, text, before, element)
  }

  remove(name: string, element: Element): void {
    const text = textOf(element)
    const set = this.#setOf(name)
    const before = set.get(text)
    if (before === undefined) return
    set.delete(text)
    this.#note(name, text, before, undefined)
  }

  /** Replaces all elements of the set. */
  replace(name: string, elements: Iterable<Element>): void {
    const wanted = new Map<string, Element>()
    for (const element of elements) wanted.set(textOf(element), element)
    for (const [text, element] of this.#setOf(name)) {
      if (!wanted.has(text)) this.remove(name, element)
    }
    for (const element of wanted.values()) this.put(name, element)
  }

  count(name: string): number {
    return this.#setOf(name).size
  }

  /** True if the mirror has exactly this element. */
  has(name: string, element: Element): boolean {
    const known = this.#setOf(name).get(textOf(element))
    return known !== undefined && sameData(known, element)
  }

  list(name: string): Iterable<Element> {
    return this.#setOf(name).values()
  }

  find(name: string, key: Uint8Array): Element | undefined {
    return this.like(name, { key })
  }

  /** Returns the element with the same key. */
  like(name: string, element: Element): Element | undefined {
    return this.#setOf(name).get(textOf(element))
  }

  /** Records an element that the kernel already has, so that it is no change. */
  restore(name: string, element: Element): void {
    this.#setOf(name).set(textOf(element), element)
  }

  /** Forgets a set without a change, because it is written again as a whole, or because its elements expire. */
  forget(name: string): void {
    this.#sets.delete(name)
  }

  /**
   * Notes that another process added this element (`isThere`) or removed it. The next changes write the element again. Returns
   * false if the kernel has the wanted element.
   */
  suspect(name: string, found: Element, isThere: boolean): boolean {
    const text = textOf(found)
    const wanted = this.#setOf(name).get(text)
    const isRight = isThere ? wanted !== undefined && sameData(wanted, found) : wanted === undefined
    const key = `${name} ${text}`
    const change = this.#changes.get(key)
    if (change === undefined && isRight) return false
    const { key: octets, keyEnd, isEnd } = found
    const suspect = {
      key: octets,
      ...(keyEnd !== undefined && { keyEnd }),
      ...(isEnd !== undefined && { isEnd }),
    }
    if (change !== undefined) change.suspect = suspect
    else this.#changes.set(key, { name, before: undefined, after: wanted, suspect })
    return !isRight
  }

  /** Returns a number that changes with every change of the set. */
  versionOf(name: string): number {
    return this.#versions.get(name) ?? 0
  }

  /** True if the set has changes that are not written yet. */
  isChanged(name: string): boolean {
    return [...this.#changes.values()].some((each) => each.name === name)
  }

  /** True if the changes that were taken last include the set. */
  isTaken(name: string): boolean {
    return this.#taken.has(name)
  }

  /**
   * Takes the changes and treats them as written. Returns three transactions to apply one after the other. New elements of
   * `ports` come before the elements that lead to them, and removed elements of `ports` come after.
   */
  takeSteps(): readonly (readonly Change[])[] {
    const [before, change, after]: [Change[], Change[], Change[]] = [[], [], []]
    for (const each of this.#changes.values()) {
      const isOfOneKind = (each.before === undefined) !== (each.after === undefined)
      if (each.name !== LED_TO || !isOfOneKind || each.suspect !== undefined) change.push(each)
      else (each.before === undefined ? before : after).push(each)
    }
    this.#taken = new Set([...this.#changes.values()].map(({ name }) => name))
    this.#changes = new Map()
    return [before, change, after]
  }

  /** Encodes everything. Calls `onElement` after each element. */
  encodeAll(to: Message, elements: Elements, onElement: () => void): void {
    for (const [name, set] of this.#sets) {
      for (const element of set.values()) {
        encode(to, elements, NEW_ELEMENT, name, element)
        onElement()
      }
    }
    elements.flush()
    this.#changes = new Map()
  }

  #setOf(name: string): Map<string, Element> {
    let set = this.#sets.get(name)
    if (set === undefined) this.#sets.set(name, (set = new Map()))
    return set
  }

  #note(name: string, text: string, before: Element | undefined, after: Element | undefined): void {
    const key = `${name} ${text}`
    const change = this.#changes.get(key)
    this.#versions.set(name, this.versionOf(name) + 1)
    if (change === undefined) this.#changes.set(key, { name, before, after })
    else if (change.before !== undefined || after !== undefined || change.suspect !== undefined) {
      change.after = after
    } else this.#changes.delete(key)
  }
}

/** Encodes the changes of one transaction. */
export function encodeChanges(to: Message, elements: Elements, changes: readonly Change[]): void {
  for (const { name, before, suspect } of changes) {
    if (suspect !== undefined) encode(to, elements, DESTROY_ELEMENT, name, suspect)
    else if (before !== undefined) encode(to, elements, DELETE_ELEMENT, name, before)
  }
  for (const { name, after } of changes) {
    if (after !== undefined) encode(to, elements, NEW_ELEMENT, name, after)
  }
  elements.flush()
}

/** Encodes one element. */
export function encode(
  to: Message,
  elements: Elements,
  action: number,
  name: string,
  element: Element,
): void {
  const { key, keyEnd, data, timeoutMs, isEnd } = element
  const width = widthOf(shapeOf(name).key)
  to.put(elements.begin(action, name, width), key, 0, width)
  if (keyEnd !== undefined) to.put(elements.keyEnd(width), keyEnd, 0, width)
  if (action === NEW_ELEMENT) {
    if (data !== undefined) to.put(elements.data(data.length), data, 0, data.length)
    if (timeoutMs !== undefined && timeoutMs > 0) elements.timeout(timeoutMs)
  }
  if (isEnd === true) elements.markRangeEnd()
  elements.end()
}

/** Returns a text that is equal for equal keys of a set. */
export function textOf({ key, keyEnd, isEnd }: Element): string {
  const end = keyEnd === undefined ? '' : `-${hex(keyEnd)}`
  return `${hex(key)}${end}${isEnd === true ? 'e' : ''}`
}

function sameData(a: Element, b: Element): boolean {
  if (a.timeoutMs !== b.timeoutMs) return false
  if (a.data === undefined || b.data === undefined) return a.data === b.data
  return Buffer.compare(a.data, b.data) === 0
}

function hex(octets: Uint8Array): string {
  return Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString('hex')
}
