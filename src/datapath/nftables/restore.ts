// What an earlier process left in the kernel, taken over: each set as it is, prefixes and policies into their tables. A
// table of another layout is not read: it is replaced.

import type { DatapathDump } from '../datapath.ts'
import { PrefixBatch } from '../prefix-batch.ts'
import { COMMENT } from './install.ts'
import { DumpReader, eachElement, KEPT, readTable, TIMED } from './dump.ts'
import type { Element } from './mirror.ts'
import type { Table } from './table.ts'

export interface Restored {
  readonly dump: DatapathDump
  /** Elements that go by themselves, with the time that they have left. */
  readonly timed: ReadonlyMap<string, readonly Element[]>
}

export function restore(table: Table): Restored {
  const { socket, message, mirror, prefixes, policies } = table
  const timed = new Map<string, Element[]>()
  const comment = readTable(socket, message)
  if (comment === undefined || Buffer.compare(comment, COMMENT) !== 0) {
    const prefixes = new PrefixBatch()
    return { dump: { mode: 'enforce', prefixes, policies: [], endpoints: [] }, timed }
  }
  for (const name of KEPT) {
    eachElement(socket, message, name, (element) => mirror.restore(name, element))
  }
  const dump = new DumpReader(socket, message).read()
  for (const entry of dump.policies) policies.upsert(entry)
  for (let i = 0; i < dump.prefixes.count; i++) {
    prefixes.set(dump.prefixes, i, dump.prefixes.identity(i), dump.prefixes.addressClass(i))
  }
  for (const name of TIMED) {
    const elements: Element[] = []
    eachElement(socket, message, name, (element) => elements.push(element))
    timed.set(name, elements)
  }
  return { dump, timed }
}
