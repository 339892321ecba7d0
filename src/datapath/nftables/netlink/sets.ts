// This file encodes sets and their elements as messages. An element's key and data are words at fixed places, so a batch of
// addresses is encoded without an object for each address.

import { ATTRIBUTE_MAX, CREATE, type Message } from './message.ts'
import { putVerdict } from './expressions.ts'
import { FIELD, TABLE, widthOf, type Field, type SetShape } from '../rules/layout.ts'

export const NEW_SET = 9
export const NEW_ELEMENT = 12
export const DELETE_ELEMENT = 14
/** Deletes an element if it exists (kernel 6.3). */
export const DESTROY_ELEMENT = 30

const FLAG = { ranges: 0x4, map: 0x8, timeout: 0x10, dynamic: 0x20, concat: 0x80 } as const
const TYPE_VERDICT = 0xffffff00
const TYPE_BITS = 6
const KEY = 1
const DATA = 2
const ELEMENT_FLAGS = 3
const TIMEOUT = 4
const KEY_END = 10
const CATCH_ALL = 2
const RANGE_END = 1
const LIST_ELEM = 1
const VALUE = 1

/** Encodes one message that makes the set, without elements. `id` is the set's place in the batch. */
export function encodeSet(to: Message, shape: SetShape, id: number): number {
  const at = to.begin(NEW_SET, CREATE)
  const { name, key, data, ranges, timeoutMs, dynamic, size } = shape
  to.text(1, TABLE)
  to.text(2, name)
  to.u32(10, id)
  const isConcat = key.length > 1 && shape.opaque !== true
  to.u32(
    3,
    (ranges === true ? FLAG.ranges : 0) |
      (data === undefined ? 0 : FLAG.map) |
      (timeoutMs === undefined ? 0 : FLAG.timeout) |
      (dynamic === true ? FLAG.dynamic : 0) |
      (isConcat ? FLAG.concat : 0),
  )
  to.u32(4, shape.opaque === true ? FIELD.integer[0] : typeOf(key))
  to.u32(5, widthOf(key))
  if (data === 'verdict') {
    to.u32(6, TYPE_VERDICT)
    to.u32(7, 0)
  } else if (data !== undefined) {
    to.u32(6, typeOf(data))
    to.u32(7, widthOf(data))
  }
  if (isConcat || size !== undefined) encodeDescription(to, isConcat ? key : [], size)
  if (timeoutMs !== undefined && timeoutMs > 0) to.u64(11, timeoutMs)
  to.end()
  return at
}

function encodeDescription(to: Message, key: readonly Field[], size: number | undefined): void {
  const description = to.open(9)
  if (size !== undefined) to.u32(1, size)
  if (key.length > 0) {
    const concat = to.open(2)
    for (const field of key) {
      const element = to.open(LIST_ELEM)
      to.u32(1, FIELD[field][1])
      to.close(element)
    }
    to.close(concat)
  }
  to.close(description)
}

function typeOf(fields: readonly Field[]): number {
  return fields.reduce((type, field) => (type << TYPE_BITS) | FIELD[field][0], 0)
}

/** The place and size of an element in its message, and the place of its key. */
export interface WrittenElement {
  readonly at: number
  readonly key: number
  readonly size: number
}

/** Writes elements one after the other, in as many messages as they need. */
export class Elements {
  readonly #to: Message
  #message = -1
  #list = 0
  #element = 0
  #key = 0
  #action = NEW_ELEMENT
  #name = ''

  constructor(to: Message) {
    this.#to = to
  }

  /** Where the message begins that was written last; -1 before the first message. */
  last = -1

  /** Ends the open message. */
  flush(): void {
    if (this.#message < 0) return
    this.#to.close(this.#list)
    this.#to.end()
    this.#message = -1
  }

  /** Begins an element. Returns where its key is, which has `keyWidth` zero octets. */
  begin(action: number, name: string, keyWidth: number): number {
    const to = this.#to
    const isFull = this.#message >= 0 && to.since(this.#list) > ATTRIBUTE_MAX
    if (isFull || this.#message < 0 || name !== this.#name || action !== this.#action) {
      this.flush()
      this.#action = action
      this.#name = name
      this.last = this.#message = to.begin(action, action === NEW_ELEMENT ? CREATE : 0)
      to.text(1, TABLE)
      to.text(2, name)
      this.#list = to.open(3)
    }
    this.#element = to.open(LIST_ELEM)
    return (this.#key = this.#value(KEY, keyWidth))
  }

  /** The element that was ended last. */
  get written(): WrittenElement {
    return { at: this.#element, key: this.#key, size: this.#to.size - this.#element }
  }

  /** Repeats an element in the same message. Returns where its key is, which the caller must change. */
  again({ at, key, size }: WrittenElement): number {
    return this.#to.repeat(at, size) + key - at
  }

  /** Writes the end of the key's range. Returns where it is. */
  keyEnd(keyWidth: number): number {
    return this.#value(KEY_END, keyWidth)
  }

  data(width: number): number {
    return this.#value(DATA, width)
  }

  verdict(chain: string): void {
    putVerdict(this.#to, DATA, 'goto', chain)
  }

  timeout(ms: number): void {
    this.#to.u64(TIMEOUT, ms)
  }

  /** Marks the element as the end of a range, in a set with one field. */
  markRangeEnd(): void {
    this.#to.u32(ELEMENT_FLAGS, RANGE_END)
  }

  end(): void {
    this.#to.close(this.#element)
  }

  /** Writes a map's data for every other key. Without words, removes the element that stands for every other key. */
  otherwise(name: string, words: readonly number[] | undefined): void {
    this.flush()
    this.last =
      words === undefined ? this.#to.begin(DESTROY_ELEMENT, 0) : this.#to.begin(NEW_ELEMENT, CREATE)
    this.#to.text(1, TABLE)
    this.#to.text(2, name)
    const list = this.#to.open(3)
    const element = this.#to.open(LIST_ELEM)
    this.#to.u32(ELEMENT_FLAGS, CATCH_ALL)
    if (words !== undefined) {
      const at = this.#value(DATA, words.length * 4)
      words.forEach((word, i) => this.#to.putWord(at + i * 4, word))
    }
    this.#to.close(element)
    this.#to.close(list)
    this.#to.end()
  }

  /** Removes all elements of a set. */
  clear(name: string): void {
    this.flush()
    this.last = this.#to.begin(DELETE_ELEMENT, 0)
    this.#to.text(1, TABLE)
    this.#to.text(2, name)
    this.#to.end()
  }

  #value(type: number, width: number): number {
    const outer = this.#to.open(type)
    const at = this.#to.space(VALUE, width)
    this.#to.close(outer)
    return at
  }
}
