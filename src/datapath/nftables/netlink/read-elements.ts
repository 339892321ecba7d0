// Elements of the kernel's sets as objects, and the comment of our table.

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

/** Visits each element of a set, or the one with a key; `onOtherwise`: there is one for every other key. */
export function eachElement(
  socket: Socket,
  message: Message,
  name: string,
  visit: (element: Element) => void,
  only?: Uint8Array,
  onOtherwise: () => void = () => undefined,
): boolean {
  const ask = only === undefined ? socket.list.bind(socket) : socket.ask.bind(socket)
  return ask(requestOf(name, only), message, (reader, from, end) => {
    readElements(reader, from, end, visit, onOtherwise)
  })
}

/** The same for all elements, with pauses: the kernel is asked by a thread of its own, on a socket of its own. */
export function* eachElementInSlices(
  socket: Socket,
  message: Message,
  name: string,
  visit: (element: Element) => void,
  attempts?: number,
): Generator<undefined, Outcome> {
  const read = (reader: Reader, from: number, end: number): void => {
    readElements(reader, from, end, visit, () => undefined)
  }
  return yield* socket.listInSlices(requestOf(name), message, read, attempts)
}

/** The set that a message of elements is about. */
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

/** Elements of a message; `onOtherwise`: the one for every other key. */
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

/** Comment of our table; undefined when there is none. */
export function readTable(socket: Socket, message: Message): Uint8Array | undefined {
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
