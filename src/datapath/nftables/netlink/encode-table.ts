// This file encodes tables, chains and rules as messages of nf_tables (linux/netfilter/nf_tables.h).

import type { Expression } from './expressions.ts'
import { APPEND, CREATE, type Message } from './message.ts'

const NEW_TABLE = 0
const NEW_CHAIN = 3
const NEW_RULE = 6
const TABLE_USERDATA = 6
const ACCEPT = 1

/** Where packets enter a chain. A packet that reaches the end of the chain is accepted. */
export interface ChainHook {
  /** `nat` sees only the first packet of a connection. */
  readonly type: 'filter' | 'nat'
  readonly number: number
  readonly priority: number
}

/** `userdata` has the table's comment in nft's form. */
export function encodeTable(to: Message, table: string, userdata?: Uint8Array): void {
  to.begin(NEW_TABLE, CREATE)
  to.text(1, table)
  to.u32(2, 0)
  if (userdata !== undefined) to.bytes(TABLE_USERDATA, userdata)
  to.end()
}

/** Without a hook, packets enter the chain only from other chains. */
export function encodeChain(to: Message, table: string, name: string, hook?: ChainHook): void {
  to.begin(NEW_CHAIN, CREATE)
  to.text(1, table)
  to.text(3, name)
  if (hook !== undefined) {
    const nest = to.open(4)
    to.u32(1, hook.number)
    to.u32(2, hook.priority >>> 0)
    to.close(nest)
    to.u32(5, ACCEPT)
    to.text(7, hook.type)
  }
  to.end()
}

/** Appends a rule to the chain. Returns where the message begins. */
export function encodeRule(
  to: Message,
  table: string,
  chain: string,
  expressions: readonly Expression[],
): number {
  const at = to.begin(NEW_RULE, CREATE | APPEND)
  to.text(1, table)
  to.text(2, chain)
  const list = to.open(4)
  for (const expression of expressions) expression(to)
  to.close(list)
  to.end()
  return at
}
