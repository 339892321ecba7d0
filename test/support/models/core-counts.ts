// Compares a node's tables with what they should hold: entries in force, and the numbers of names, mappings and entries.

import assert from 'node:assert/strict'
import type { Node } from '../nodes/node.ts'
import { keyOfPrefix } from './recorder.ts'

/** The prefixes that the node counts as applied are exactly those in force, even during a commit. */
export function checkApplied({ core, recorder }: Node): void {
  const { prefixes } = core.ipcache
  const applied = new Map<string, number>()
  for (let row = 1; row <= prefixes.slots.high; row++) {
    if (prefixes.applied[row] === 0) continue
    const key = keyOfPrefix(prefixes.prefix(row), prefixes.scoped.scope[row] ?? 0)
    applied.set(key, prefixes.applied[row] ?? 0)
  }
  const inForce = new Map<string, number>()
  for (const [key, place] of recorder.prefixes) inForce.set(key, place.identity)
  assert.deepEqual(inForce, applied)
}

export function checkNameCounts(
  { core }: Node,
  pairs: readonly { readonly name: string; readonly address: string }[],
): void {
  const { names, mappings, entries: table } = core.names
  const mapped = new Set(pairs.map(({ name, address }) => `${name} ${address}`))
  assert.equal(table.slots.used, pairs.length)
  assert.equal(mappings.slots.used, mapped.size)
  assert.equal(names.slots.used, new Set(pairs.map(({ name }) => name)).size)
}
