// What the table is known by apart from its elements: sets, counters and chains of ours; its rules with the elements that never
// change; and what is not ours. Some two milliseconds.

import { createHash, type Hash } from 'node:crypto'
import type { Stranger } from './install.ts'
import { COUNTERS, SETS, TABLE } from './layout.ts'
import { FAMILY_INET, type Message } from '../netlink/message.ts'
import type { Reader } from '../netlink/reader.ts'
import type { Table } from '../tables/table.ts'
import { chainsOf, CHAINS, makeRules } from './rules.ts'
import { rulesInKernel } from './written.ts'

const GET_TABLE = 1
const GET_ELEMENT = 13
const TABLE_NAME = 1
const TABLE_FLAGS = 2
const LIST = 3
const ELEMENT_FLAGS = 3
const CATCH_ALL = 2
const ELEMENT = 1

interface Part {
  readonly get: number
  /** Takes one away. */
  readonly remove: number
  readonly name: number
  /** Attributes that say what it is, not how often it was used. */
  readonly attributes: readonly number[]
  /** Names of ours. */
  readonly own: ReadonlySet<string>
}

const OWN_CHAINS: ReadonlySet<string> = new Set([
  ...CHAINS.map(({ name }) => name),
  ...chainsOf(makeRules(true)),
])
const OWN_SETS: ReadonlySet<string> = new Set(SETS.map(({ name }) => name))
const OWN_COUNTERS: ReadonlySet<string> = new Set(COUNTERS)
/** In an order in which they can be taken away. */
const PARTS: readonly Part[] = [
  { get: 10, remove: 11, name: 2, attributes: [2, 3, 4, 5, 6, 7, 11], own: OWN_SETS },
  { get: 23, remove: 24, name: 2, attributes: [], own: new Set() },
  { get: 4, remove: 5, name: 3, attributes: [3, 4, 5, 7, 10], own: OWN_CHAINS },
  { get: 19, remove: 20, name: 2, attributes: [2, 3], own: OWN_COUNTERS },
]
/** Sets without a name belong to rules and go with them. */
const UNNAMED = '__'

export interface Structure {
  /** The table, and what of ours is in it; empty when there is no table. */
  readonly frame: string
  /** What can be written anew by itself. */
  readonly rules: string
  readonly strangers: readonly Stranger[]
}

export function structureInKernel(table: Table): Structure {
  const frame = createHash('sha256')
  const rules = createHash('sha256')
  const strangers: Stranger[] = []
  const isThere = readFrame(table, rules)
  for (const part of PARTS) {
    for (const [name, octets] of thingsInKernel(table, part)) {
      if (part.own.has(name)) frame.update(octets)
      else if (!name.startsWith(UNNAMED)) strangers.push({ remove: part.remove, name })
    }
  }
  for (const { name } of strangers) rules.update(name)
  return {
    frame: isThere ? frame.digest('hex') : '',
    rules: rules.update(fixedInKernel(table)).digest('hex'),
    strangers,
  }
}

/** Whether there is a table; it can be put to sleep. */
function readFrame({ socket, message }: Table, rules: Hash): boolean {
  let isThere = false
  const request = (to: Message, flags: number): void => {
    to.begin(GET_TABLE, flags, FAMILY_INET)
    to.end()
  }
  socket.list(request, message, (reader, from, end) => {
    const name = reader.find(from, end, TABLE_NAME)
    if (name < 0 || reader.text(name, end) !== TABLE) return
    isThere = true
    const flags = reader.find(from, end, TABLE_FLAGS)
    if (flags >= 0) rules.update(String(reader.u32(flags)))
  })
  return isThere
}

function thingsInKernel(
  { socket, message }: Table,
  { get, name, attributes }: Part,
): ReadonlyMap<string, Uint8Array> {
  const found = new Map<string, Uint8Array>()
  const request = (to: Message, flags: number): void => {
    to.begin(get, flags, FAMILY_INET)
    to.text(TABLE_NAME, TABLE)
    to.end()
  }
  socket.list(request, message, (reader, from, end) => {
    const table = reader.find(from, end, TABLE_NAME)
    const at = reader.find(from, end, name)
    if (table < 0 || at < 0 || reader.text(table, end) !== TABLE) return
    const octets: Uint8Array[] = []
    reader.attributes(from, end, (type, first, last) => {
      if (attributes.includes(type)) octets.push(reader.octets.slice(first, last))
    })
    found.set(reader.text(at, end), Buffer.concat(octets))
  })
  return found
}

function fixedInKernel(table: Table): string {
  const hash = createHash('sha256').update(rulesInKernel(table))
  for (const { name, data, otherwise } of SETS) {
    if (data !== 'verdict' && otherwise === undefined) continue
    hash.update(elementsInKernel(table, name, otherwise !== undefined).join('\n'))
  }
  return hash.digest('hex')
}

/** Octets of all elements of a set in order, or of the one for every other key. */
function elementsInKernel({ socket, message }: Table, name: string, isOther: boolean): string[] {
  const found: string[] = []
  const request = (to: Message, flags: number): void => {
    to.begin(GET_ELEMENT, flags, FAMILY_INET)
    to.text(1, TABLE)
    to.text(2, name)
    if (isOther) {
      const list = to.open(LIST)
      const element = to.open(ELEMENT)
      to.u32(ELEMENT_FLAGS, CATCH_ALL)
      to.close(element)
      to.close(list)
    }
    to.end()
  }
  const visit = (reader: Reader, from: number, end: number): void => {
    reader.attributes(from, end, (type, listFrom, listEnd) => {
      if (type !== LIST) return
      reader.attributes(listFrom, listEnd, (_, at, to) => {
        found.push(Buffer.from(reader.octets.subarray(at, to)).toString('latin1'))
      })
    })
  }
  if (isOther) socket.ask(request, message, visit)
  else socket.list(request, message, visit)
  return found.toSorted()
}
