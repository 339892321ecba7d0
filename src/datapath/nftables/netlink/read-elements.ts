// This file reads elements of the kernel's sets as objects, and the comment of namegate's table.

import { TABLE } from '../rules/layout.ts'
import { FAMILY_INET, type Message } from './message.ts'
import type { Outcome } from './listing.ts'
import type { Element } from '../tables/mirror.ts'
import type { Reader } from './reader.ts'
import type { Socket } from './socket.ts'

const GET_ELEMENT = 13
const GET_TABLE = 1
const SET_NAME = 2
const LIST = 3
const KEY = 1
const DATA = 2
const FLAGS = 3
const EXPIRATION = 5
const KEY_END = 10
const VALUE = 1
const RANGE_END = 1
const CATCH_ALL = 2
const TABLE_NAME = 1
const TABLE_USERDATA = 6

/** The socket for requests, and the message in which requests are encoded. */
export interface Asking {
  readonly socket: Socket
  readonly message: Message
}

/**
 * Visits each element of a set. Returns false if there is no such set. `onOtherwise` is called if the set has an element for
 * every other key.
 */
export function eachElement(
  { socket, message }: Asking,
  name: string,
  visit: (element: Element) => void,
  onOtherwise: () => void = () => undefined,
): boolean {
  return socket.list(requestOf(name), message, (reader, from, end) => {
    readElements(reader, from, end, visit, onOtherwise)
  })
}

/** Returns the element of a set with this key. */
export function findElement(
  { socket, message }: Asking,
  name: string,
  key: Uint8Array,
): Element | undefined {
  let found: Element | undefined
  socket.ask(requestOf(name, key), message, (reader, from, end) => {
    const visit = (element: Element): void => void (found = element)
    readElements(reader, from, end, visit, () => undefined)
  })
  return found
}

/** Visits each element as `eachElement` does, with pauses. A thread makes the listing, on a socket of its own. */
export function* eachElementInSlices(
  { socket, message }: Asking,
  name: string,
  visit: (element: Element) => void,
  attempts?: number,
): Generator<undefined, Outcome> {
  const read = (reader: Reader, from: number, end: number): void => {
    readElements(reader, from, end, visit, () => undefined)
  }
  return yield* socket.listInSlices(requestOf(name), message, read, attempts)
}

/** The name of the set to which the elements of a message belong. */
export function setNameOf(reader: Reader, from: number, end: number): string {
  let name = ''
  reader.attributes(from, end, (type, at, to) => {
    if (type === SET_NAME) name = reader.text(at, to)
  })
  return name
}

function requestOf(name: string, only?: Uint8Array): (to: Message, flags: number) => void {
  return (to, flags) => {
    to.begin(GET_ELEMENT, flags, FAMILY_INET)
    to.text(1, TABLE)
    to.text(2, name)
    if (only !== undefined) putKey(to, only)
    to.end()
  }
}

/** Visits the elements of a message. Calls `onOtherwise` for the element that stands for every other key. */
export function readElements(
  reader: Reader,
  from: number,
  end: number,
  visit: (element: Element) => void,
  onOtherwise: () => void,
): void {
  reader.attributes(from, end, (type, listFrom, listEnd) => {
    if (type !== LIST) return
    reader.attributes(listFrom, listEnd, (_, elementFrom, elementEnd) => {
      const element = readElement(reader, elementFrom, elementEnd)
      if (element === undefined) onOtherwise()
      else visit(element)
    })
  })
}

function putKey(to: Message, key: Uint8Array): void {
  const list = to.open(LIST)
  const element = to.open(1)
  const outer = to.open(KEY)
  to.bytes(VALUE, key)
  to.close(outer)
  to.close(element)
  to.close(list)
}

function readElement(reader: Reader, from: number, end: number): Element | undefined {
  const found: {
    key?: Uint8Array
    keyEnd?: Uint8Array
    data?: Uint8Array
    timeoutMs?: number
    isEnd?: boolean
  } = {}
  let isCatchAll = false
  reader.attributes(from, end, (type, at, to) => {
    if (type === KEY) found.key = valueOf(reader, at, to)
    else if (type === KEY_END) found.keyEnd = valueOf(reader, at, to)
    else if (type === DATA) found.data = valueOf(reader, at, to)
    else if (type === EXPIRATION) found.timeoutMs = reader.u64(at)
    else if (type === FLAGS) {
      isCatchAll = (reader.u32(at) & CATCH_ALL) !== 0
      if ((reader.u32(at) & RANGE_END) !== 0) found.isEnd = true
    }
  })
  const { key, ...rest } = found
  return isCatchAll || key === undefined ? undefined : { key, ...rest }
}

function valueOf(reader: Reader, from: number, end: number): Uint8Array {
  let value = new Uint8Array(0)
  reader.attributes(from, end, (type, at, to) => {
    if (type === VALUE) value = reader.octets.slice(at, to)
  })
  return value
}

/** Returns the comment of namegate's table, or undefined if there is no table. */
export function readTable({ socket, message }: Asking): Uint8Array | undefined {
  let found: Uint8Array | undefined
  const request = (to: Message, flags: number): void => {
    to.begin(GET_TABLE, flags, FAMILY_INET)
    to.end()
  }
  socket.list(request, message, (reader, from, end) => {
    let [name, userdata] = ['', new Uint8Array(0)]
    reader.attributes(from, end, (type, at, to) => {
      if (type === TABLE_NAME) name = reader.text(at, to)
      if (type === TABLE_USERDATA) userdata = reader.octets.slice(at, to)
    })
    if (name === TABLE) found = userdata
  })
  return found
}
