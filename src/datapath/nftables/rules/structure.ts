// This file reads the table without its changing elements: namegate's sets, counters and chains, the rules with the elements that
// never change, and objects of other processes. It takes some two milliseconds.

import { createHash, type Hash } from 'node:crypto'
import type { Stranger } from './install.ts'
import { COUNTERS, SETS, TABLE } from './layout.ts'
import { FAMILY_INET, type Message } from '../netlink/message.ts'
import type { Reader } from '../netlink/reader.ts'
import type { Table } from '../tables/table.ts'
import { ALL_FORMS } from './form.ts'
import { chainsOf, entryChains, makeRules } from './rules.ts'
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
  /** The message type that removes an object. */
  readonly remove: number
  readonly name: number
  /** The attributes that describe the object, without usage counts. */
  readonly attributes: readonly number[]
  /** Names of namegate's own objects. */
  readonly own: ReadonlySet<string>
}

const OWN_SETS: ReadonlySet<string> = new Set(SETS.map(({ name }) => name))
const OWN_COUNTERS: ReadonlySet<string> = new Set(COUNTERS)
/** Kinds of objects, in an order in which they can be removed. */
function makeParts(): readonly Part[] {
  const ownChains = ALL_FORMS.flatMap((form) => [
    ...entryChains(form).map(({ name }) => name),
    ...chainsOf(makeRules(form)),
  ])
  return [
    { get: 10, remove: 11, name: 2, attributes: [2, 3, 4, 5, 6, 7, 11], own: OWN_SETS },
    { get: 23, remove: 24, name: 2, attributes: [], own: new Set() },
    { get: 4, remove: 5, name: 3, attributes: [3, 4, 5, 7, 10], own: new Set(ownChains) },
    { get: 19, remove: 20, name: 2, attributes: [2, 3], own: OWN_COUNTERS },
  ]
}

/** Made at the first use, because the rules take a while to make. */
let parts: readonly Part[] | undefined
/** Unnamed sets belong to rules and are removed with them. */
const UNNAMED = '__'

export interface Structure {
  /** A digest of the table and namegate's objects in it; empty if there is no table. */
  readonly frame: string
  /** A digest of the part that can be written again by itself. */
  readonly rules: string
  readonly strangers: readonly Stranger[]
}

export function structureInKernel(table: Table): Structure {
  const frame = createHash('sha256')
  const rules = createHash('sha256')
  const strangers: Stranger[] = []
  const isThere = readFrame(table, rules)
  for (const part of (parts ??= makeParts())) {
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

/** Returns true if there is a table. Adds the table's flags to the digest, because a flag can make the table dormant. */
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

/** The octets of all elements of a set, sorted, or of the element that stands for every other key. */
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
