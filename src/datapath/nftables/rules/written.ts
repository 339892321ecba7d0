// This file finds out if the kernel's table is exactly the table that this program writes. Then a start can leave the table in
// place. A replacement is one transaction, but packets meet it half done. The kernel switches rules and hashed sets first, and
// sets of concatenated ranges (pipapo) some hundred microseconds later. In between, known connections find no ports and are
// dropped.
//
// The set `written` holds a mark. It is a digest of the rules as the kernel lists them and of the octets that install them. If a
// process changes the rules, or another version writes other rules, the mark differs. The check costs two listings and one
// encoding at a start.

import { createHash } from 'node:crypto'
import { eachElement } from '../netlink/read-elements.ts'
import { sidesOf, type RuleForm } from './form.ts'
import { encodeInstall } from './install.ts'
import { SETS, TABLE, VERDICTS } from './layout.ts'
import { FAMILY_INET, Message } from '../netlink/message.ts'
import { Elements } from '../netlink/sets.ts'
import type { Table } from '../tables/table.ts'

const GET_RULE = 7
const RULE_CHAIN = 2
const RULE_EXPRESSIONS = 4
const MARK_OCTETS = 16
/** How many elements a map of verdicts has. */
export const TRIPLES = VERDICTS.length ** 3

/** A digest of the chains and expressions of all rules in the kernel, without handles and counts. */
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

/** Marks the table that was just installed as this program's table. */
export function markWritten(table: Table): void {
  const key = markOf(rulesInKernel(table), table.form)
  table.mirror.replace('written', [{ key }])
  table.flush()
}

/** Returns the form in which this program wrote the table. `other`: the table differs. The mirror must know the table's sets. */
export function findWritten(table: Table): RuleForm | 'other' {
  const rules = rulesInKernel(table)
  const form = table.forms.find((each) => {
    return table.mirror.has('written', { key: markOf(rules, each) })
  })
  if (form === undefined) return 'other'
  const used = SETS.filter(({ name }) => isUsed(form, name))
  return used.every(({ name }) => hasFixed(table, name)) ? form : 'other'
}

function markOf(rules: string, form: RuleForm): Uint8Array {
  const octets = new Message()
  octets.beginBatch()
  encodeInstall(octets, new Elements(octets), form)
  const hash = createHash('sha256').update(rules)
  return hash.update(octets.octets.subarray(0, octets.size)).digest().subarray(0, MARK_OCTETS)
}

/** True if the form has rules that use the set. A map of verdicts belongs to one side. */
function isUsed(form: RuleForm, name: string): boolean {
  return !name.startsWith('verdicts_') || sidesOf(form).some((side) => name.includes(`_${side}`))
}

/** True if a set has everything that never changes: all verdicts, or the element that stands for every other key. */
function hasFixed(table: Table, name: string): boolean {
  const shape = SETS.find((each) => each.name === name)
  const isVerdicts = shape?.data === 'verdict'
  if (!isVerdicts && shape?.otherwise === undefined) return true
  let [count, hasOtherwise] = [0, false]
  eachElement(
    table,
    name,
    () => count++,
    () => (hasOtherwise = true),
  )
  return isVerdicts ? count === TRIPLES : hasOtherwise
}
