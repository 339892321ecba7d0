// Everything in force, read back from the kernel's sets.

import { endpointId, generation, identity, ruleId, type EndpointId } from '../../core/ids.ts'
import type { Family, Prefix } from '../../core/ip.ts'
import type {
  DatapathDump,
  DatapathEndpoint,
  Mode,
  PolicyEntry,
  PolicyVerdict,
} from '../datapath.ts'
import { PrefixBatch } from '../prefix-batch.ts'
import { shortAt, wordAt } from './keys.ts'
import { MODE_NUMBER, TABLE, VERDICTS } from './layout.ts'
import { FAMILY_INET, type Message } from './message.ts'
import type { Element } from './mirror.ts'
import type { PortEntry } from './port-sets.ts'
import type { Reader } from './reader.ts'
import type { Socket } from './socket.ts'

const GET_ELEMENT = 13
const GET_TABLE = 1
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

/** Bits of an endpoint's second word. */
export const ENFORCING = 1
export const AUDIT = 2
export const SCOPED = 4
export const SIDE_OUT = 8

/** Visits each element of a set, or the one with a key; `onOtherwise`: there is one for every other key. */
export function eachElement(
  socket: Socket,
  message: Message,
  name: string,
  visit: (element: Element) => void,
  only?: Uint8Array,
  onOtherwise: () => void = () => undefined,
): boolean {
  const request = (to: Message, flags: number): void => {
    to.begin(GET_ELEMENT, flags, FAMILY_INET)
    to.text(1, TABLE)
    to.text(2, name)
    if (only !== undefined) putKey(to, only)
    to.end()
  }
  const ask = only === undefined ? socket.list.bind(socket) : socket.ask.bind(socket)
  return ask(request, message, (reader, from, end) => {
    reader.attributes(from, end, (type, listFrom, listEnd) => {
      if (type !== LIST) return
      reader.attributes(listFrom, listEnd, (_, elementFrom, elementEnd) => {
        const element = readElement(reader, elementFrom, elementEnd)
        if (element === undefined) onOtherwise()
        else visit(element)
      })
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

export class DumpReader {
  readonly #socket: Socket
  readonly #message: Message

  constructor(socket: Socket, message: Message) {
    this.#socket = socket
    this.#message = message
  }

  read(): DatapathDump {
    const prefixes = new PrefixBatch()
    this.#prefixes(4, prefixes)
    this.#prefixes(6, prefixes)
    return {
      mode: this.mode(),
      prefixes,
      policies: this.#policies(),
      endpoints: this.#endpoints(),
    }
  }

  mode(): Mode {
    let mode: Mode = 'enforce'
    this.#each('mode', ({ key }) => {
      mode = wordAt(key, 0) === MODE_NUMBER.bypass ? 'bypass' : 'audit'
    })
    return mode
  }

  #each(name: string, visit: (element: Element) => void): void {
    eachElement(this.#socket, this.#message, name, visit)
  }

  #prefixes(family: Family, into: PrefixBatch): void {
    const octets = new Uint8Array(16)
    const width = family === 4 ? 4 : 16
    const add = (
      key: Uint8Array,
      at: number,
      length: number,
      id: number,
      addressClass: number,
    ): void => {
      octets.fill(0)
      octets.set(key.subarray(at, at + width))
      const scope = wordAt(key, 0)
      into.add(family, octets, 0, length, identity(id), identity(addressClass), scope)
    }
    this.#each(`exact${family}`, ({ key, data }) => {
      if (data !== undefined) add(key, 4, width * 8, wordAt(data, 4), wordAt(data, 12))
    })
    this.#each(`prefixes${family}`, ({ key, data }) => {
      if (data !== undefined) add(key, 8, wordAt(key, 4), wordAt(data, 0), wordAt(data, 4))
    })
  }

  #policies(): readonly PolicyEntry[] {
    const sets = new Map<number, PortEntry[]>()
    this.#each('entries', ({ key, data }) => {
      if (data === undefined) return
      const set = sets.get(wordAt(key, 0)) ?? []
      set.push(portEntryOf(key, data))
      sets.set(wordAt(key, 0), set)
    })
    const entries: PolicyEntry[] = []
    this.#each('policies', ({ key, data }) => {
      const head = { identity: identity(wordAt(key, 0)), endpoint: endpointId(wordAt(key, 4)) }
      for (const entry of sets.get(data === undefined ? 0 : wordAt(data, 4)) ?? []) {
        entries.push({ ...head, ...entry })
      }
    })
    return entries
  }

  #endpoints(): readonly DatapathEndpoint[] {
    const sources = this.#sources()
    const endpoints: DatapathEndpoint[] = []
    this.#each('endpoints', ({ key, data }) => {
      if (data === undefined) return
      const id = endpointId(wordAt(key, 0))
      const flags = wordAt(data, 4)
      endpoints.push({
        id,
        generation: generation(wordAt(data, 0)),
        enforcing: (flags & ENFORCING) !== 0,
        audit: (flags & AUDIT) !== 0,
        scoped: (flags & SCOPED) !== 0,
        sources: sources.get(id) ?? [],
        hookKey: `interface:${wordAt(data, 8)}`,
      })
    })
    return endpoints
  }

  #sources(): ReadonlyMap<EndpointId, readonly Prefix[]> {
    const sources = new Map<EndpointId, Prefix[]>()
    for (const family of [4, 6] as const) {
      this.#each(`sources${family}`, ({ key, keyEnd }) => {
        const id = endpointId(wordAt(key, 0))
        const list = sources.get(id) ?? []
        list.push(prefixOf(family, key.subarray(4), (keyEnd ?? key).subarray(4)))
        sources.set(id, list)
      })
    }
    return sources
  }
}

/** An element of `entries`. */
export function portEntryOf(key: Uint8Array, data: Uint8Array): PortEntry {
  return {
    protocol: key[4]!,
    portBits: wordAt(key, 8),
    port: shortAt(key, 12),
    verdict: verdictOf(wordAt(data, 0)),
    rule: ruleId(wordAt(data, 4)),
  }
}

/** A range that is a prefix. */
export function prefixOf(family: Family, first: Uint8Array, last: Uint8Array): Prefix {
  const octets = new Uint8Array(16)
  const width = family === 4 ? 4 : 16
  octets.set(first.subarray(0, width))
  let length = 0
  for (; length < width * 8; length++) {
    const bit = 0x80 >> (length & 7)
    if (((first[length >> 3]! ^ last[length >> 3]!) & bit) !== 0) break
  }
  return { family, octets, length }
}

function verdictOf(number: number): PolicyVerdict {
  const verdict = VERDICTS[number]
  return verdict === undefined || verdict === 'none' ? 'deny' : verdict
}
