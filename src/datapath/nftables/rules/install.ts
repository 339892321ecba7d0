// This file encodes the whole table as one batch: the removal of the old table, then table, counters, sets, chains, rules, and
// the elements that never change. The caller adds all other elements to the same batch, so one transaction replaces the old
// table.

import { encodeChain, encodeRule, encodeTable } from '../netlink/encode-table.ts'
import { COUNTERS, LAYOUT, SETS, TABLE, VERDICTS, type Side } from './layout.ts'
import { CREATE, type Message } from '../netlink/message.ts'
import { endOf } from './rules-end.ts'
import { sidesOf, type RuleForm } from './form.ts'
import { chainsOf, entryChains, makeRules } from './rules.ts'
import { encodeSet, NEW_ELEMENT, type Elements, type WrittenElement } from '../netlink/sets.ts'

const DELETE_TABLE = 2
const DELETE_CHAIN = 5
const DELETE_RULE = 8
const DELETE_OBJECT = 20
const NEW_OBJECT = 18
const OBJECT_COUNTER = 1
/** The table's comment in nft's form: type 0, length, text, zero. */
export const COMMENT = comment(`layout ${LAYOUT}`)

/** Deletes the table; it is no error if there is none. Returns where the last message begins. */
export function encodeRemoval(to: Message): number {
  encodeTable(to, TABLE, COMMENT)
  const at = to.begin(DELETE_TABLE, 0)
  to.text(1, TABLE)
  to.end()
  return at
}

export function encodeInstall(to: Message, elements: Elements, form: RuleForm): void {
  encodeFrame(to)
  encodeRules(to, elements, form)
}

/** Encodes the table without chains, so it judges no packet yet. Returns where the last message begins. */
export function encodeFrame(to: Message): number {
  encodeRemoval(to)
  encodeTable(to, TABLE, COMMENT)
  for (const name of COUNTERS) encodeCounter(to, name)
  return SETS.reduce((_, shape, i) => encodeSet(to, shape, i + 1), 0)
}

/** An object that another process put into the table: its name, and the message type that removes it. */
export interface Stranger {
  readonly remove: number
  readonly name: string
}

/** Encodes chains, rules and the elements that never change again, for a table that has all its sets and counters. */
export function encodeRulesAnew(
  to: Message,
  elements: Elements,
  form: RuleForm,
  strangers: readonly Stranger[],
): void {
  encodeTable(to, TABLE, COMMENT)
  to.begin(DELETE_RULE, 0)
  to.text(1, TABLE)
  to.end()
  for (const { name, data, otherwise } of SETS) {
    if (data === 'verdict') elements.clear(name)
    if (otherwise !== undefined) elements.otherwise(name, undefined)
  }
  for (const { remove, name } of strangers) {
    to.begin(remove, 0)
    to.text(1, TABLE)
    to.text(remove === DELETE_CHAIN ? 3 : 2, name)
    if (remove === DELETE_OBJECT) to.u32(3, OBJECT_COUNTER)
    to.end()
  }
  encodeRules(to, elements, form)
}

/** Encodes chains, rules, and the elements that never change. */
export function encodeRules(to: Message, elements: Elements, form: RuleForm): void {
  const rules = makeRules(form)
  for (const { name, hook } of entryChains(form)) {
    encodeChain(to, TABLE, name, hook && { type: 'filter', ...hook })
  }
  for (const name of chainsOf(rules)) encodeChain(to, TABLE, name)
  for (const { chain, expressions } of rules) encodeRule(to, TABLE, chain, expressions)
  for (const { name, otherwise } of SETS) {
    if (otherwise !== undefined) elements.otherwise(name, otherwise)
  }
  for (const side of sidesOf(form)) encodeVerdicts(to, elements, side)
}

function encodeCounter(to: Message, name: string): void {
  to.begin(NEW_OBJECT, CREATE)
  to.text(1, TABLE)
  to.text(2, name)
  to.u32(3, OBJECT_COUNTER)
  const data = to.open(4)
  to.u64(1, 0)
  to.u64(2, 0)
  to.close(data)
  to.end()
}

/** Every possible triple of verdicts leads to a chain. Triples that lead to the same chain differ only in their key. */
function encodeVerdicts(to: Message, elements: Elements, side: Side): void {
  const numbers = [...VERDICTS.keys()]
  const triples = numbers.flatMap((a) => numbers.flatMap((b) => numbers.map((c) => [a, b, c])))
  for (const family of [4, 6] as const) {
    const written = new Map<string, WrittenElement>()
    for (const triple of triples) {
      const chain = endOf(triple.map(verdictOf), side, family)
      const like = written.get(chain)
      const at =
        like === undefined
          ? elements.begin(NEW_ELEMENT, `verdicts_${side}${family}`, 12)
          : elements.again(like)
      triple.forEach((number, i) => to.putWord(at + i * 4, number))
      if (like !== undefined) continue
      elements.verdict(chain)
      elements.end()
      written.set(chain, elements.written)
    }
  }
  elements.flush()
}

function verdictOf(number: number): (typeof VERDICTS)[number] {
  return VERDICTS[number] ?? 'none'
}

function comment(text: string): Uint8Array {
  return Uint8Array.of(0, text.length + 1, ...Buffer.from(text, 'ascii'), 0)
}
