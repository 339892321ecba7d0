// Tables, chains and rules as messages of nf_tables, whoever's table it is (linux/netfilter/nf_tables.h).

import type { Expression } from './expressions.ts'
import { APPEND, CREATE, type Message } from './message.ts'

const NEW_TABLE = 0
const NEW_CHAIN = 3
const NEW_RULE = 6
const TABLE_USERDATA = 6
const ACCEPT = 1

/** Where packets come into a chain; whatever reaches its end passes. */
export interface ChainHook {
  /** `nat` sees the first packet of a connection only. */
  readonly type: 'filter' | 'nat'
  readonly number: number
  readonly priority: number
}

/** `userdata`: as nft keeps a table's comment. */
export function encodeTable(to: Message, table: string, userdata?: Uint8Array): void {
  to.begin(NEW_TABLE, CREATE)
  to.text(1, table)
  to.u32(2, 0)
  if (userdata !== undefined) to.bytes(TABLE_USERDATA, userdata)
  to.end()
}

/** Without a hook packets come into it from other chains only. */
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

/** Behind the chain's other rules; returns where the message begins. */
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
