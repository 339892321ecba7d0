// Whether the kernel's table is just the one that this program writes, so that a start can leave it in place. To replace a table
// is one transaction, but packets meet it half done: the kernel switches rules and hashed sets first and sets of concatenated
// ranges (pipapo) some hundred microseconds later, and until then known flows find no ports and are dropped.
//
// A mark in the set `written` is made of the rules as the kernel lists them and of the octets that install them. Whoever changes
// the rules, and every version that writes others, gets another mark. Costs two listings and one encoding at a start.

import { createHash } from 'node:crypto'
import { eachElement } from '../netlink/read-elements.ts'
import { encodeInstall } from './install.ts'
import { SETS, TABLE, VERDICTS } from './layout.ts'
import { FAMILY_INET, Message } from '../netlink/message.ts'
import { Elements } from '../netlink/sets.ts'
import type { Table } from '../tables/table.ts'

const GET_RULE = 7
const RULE_CHAIN = 2
const RULE_EXPRESSIONS = 4
const MARK_OCTETS = 16
/** Elements of a map of verdicts. */
export const TRIPLES = VERDICTS.length ** 3

/** Chains and expressions of all rules that the kernel has; handles and counts are not in it. */
export function rulesInKernel({ socket, message }: Pick<Table, 'socket' | 'message'>): string {
  const hash = createHash('sha256')
  const request = (to: Message, flags: number): void => {
    to.begin(GET_RULE, flags, FAMILY_INET)
    to.text(1, TABLE)
    to.end()
  }
  socket.list(request, message, (reader, from, end) => {
    reader.attributes(from, end, (type, at, to) => {
      if (type === RULE_CHAIN || type === RULE_EXPRESSIONS) {
        hash.update(reader.octets.subarray(at, to))
      }
    })
  })
  return hash.digest('hex')
}

/** Marks the table that was just installed as this program's. */
export function markWritten(table: Table): void {
  const key = markOf(rulesInKernel(table), table.reports)
  table.mirror.replace('written', [{ key }])
  table.flush()
}

/** Whether the table, whose sets the mirror knows, is as this program writes it, with or without reports of drops. */
export function findWritten(table: Table): 'with-reports' | 'without-reports' | 'other' {
  const rules = rulesInKernel(table)
  const reports = [true, false].find((each) => {
    return table.mirror.has('written', { key: markOf(rules, each) })
  })
  if (reports === undefined || !SETS.every(({ name }) => hasFixed(table, name))) return 'other'
  return reports ? 'with-reports' : 'without-reports'
}

function markOf(rules: string, reports: boolean): Uint8Array {
  const octets = new Message()
  octets.beginBatch()
  encodeInstall(octets, new Elements(octets), reports)
  const hash = createHash('sha256').update(rules)
  return hash.update(octets.octets.subarray(0, octets.size)).digest().subarray(0, MARK_OCTETS)
}

/** Whether a set has what never changes: all verdicts, and the element for every other key. */
function hasFixed({ socket, message }: Table, name: string): boolean {
  const shape = SETS.find((each) => each.name === name)
  const isVerdicts = shape?.data === 'verdict'
  if (!isVerdicts && shape?.otherwise === undefined) return true
  let [count, hasOtherwise] = [0, false]
  eachElement(
    socket,
    message,
    name,
    () => count++,
    undefined,
    () => (hasOtherwise = true),
  )
  return isVerdicts ? count === TRIPLES : hasOtherwise
}
