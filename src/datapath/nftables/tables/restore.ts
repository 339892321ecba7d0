// What an earlier process left in the kernel, taken over: each set as it is, prefixes and policies into their tables. A
// table that this very program wrote stays in place; any other of the same layout is read and replaced, one of another layout
// replaced unread.

import type { DatapathDump } from '../../entries.ts'
import { PrefixBatch } from '../../prefix-batch.ts'
import { COMMENT } from '../rules/install.ts'
import { DumpReader } from './dump.ts'
import { eachElement, readTable } from '../netlink/read-elements.ts'
import { KEPT, shapeOf, TIMED } from '../rules/layout.ts'
import type { Element } from './mirror.ts'
import type { Table } from './table.ts'
import { findWritten } from '../rules/written.ts'

export interface Restored {
  readonly dump: DatapathDump
  /** Elements that packets added, with the time that they have left. */
  readonly timed: ReadonlyMap<string, readonly Element[]>
  /** What the table that is there can stay as; `other`: it cannot. */
  readonly written: ReturnType<typeof findWritten>
}

export function restore(table: Table): Restored {
  const { socket, message, mirror, prefixes, policies } = table
  const timed = new Map<string, Element[]>()
  const comment = readTable(socket, message)
  if (comment === undefined || Buffer.compare(comment, COMMENT) !== 0) {
    const prefixes = new PrefixBatch()
    return {
      dump: { mode: 'enforce', prefixes, policies: [], endpoints: [] },
      timed,
      written: 'other',
    }
  }
  for (const name of KEPT) {
    eachElement(socket, message, name, (element) => mirror.restore(name, element))
  }
  policies.restore()
  const dump = new DumpReader(socket, message).read()
  let fits = true
  for (let i = 0; i < dump.prefixes.count; i++) {
    const [identity, addressClass] = [dump.prefixes.identity(i), dump.prefixes.addressClass(i)]
    fits = prefixes.set(dump.prefixes, i, identity, addressClass) && fits
  }
  const written = fits ? findWritten(table) : 'other'
  for (const name of TIMED) {
    const isOfPackets = shapeOf(name).dynamic === true
    if (isOfPackets && written !== 'other') continue
    const elements: Element[] = []
    eachElement(socket, message, name, (element) => elements.push(element))
    if (isOfPackets) timed.set(name, elements)
    else table.timed.note('add', name, elements)
  }
  return { dump, timed, written }
}
