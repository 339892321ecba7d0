// validateIpCache is the deep check of all counts. It runs after each step of a test when VALIDATE is set, and never in production. It
// counts again from the rows what the tables keep as numbers: references of identities and label sets, users of rows, and lists of facts.
// It also derives the labels of every row again. It throws at the first difference. The check looks at every row and every fact and
// makes objects, so it is for small tables only.

import { identity } from '../core/ids.ts'
import { invariant } from '../core/invariant.ts'
import { EMPTY_SET, type LabelSets } from '../core/labels.ts'
import type { Allocator } from '../identity/allocator.ts'
import { HOST } from '../identity/reserved.ts'
import type { IpCache } from './ipcache.ts'

export interface Holders {
  /** Label sets that names and selectors retain, one item for each reference. */
  readonly labelSets: Iterable<number>
  /** Rows from `holdAddress` not yet given back by `dropRow`, one item for each reference. */
  readonly rows: Iterable<number>
}

/** Throws if a count is wrong. Call between batches, after `LabelSets.collect`. */
export function validateIpCache(
  ipcache: IpCache,
  sets: LabelSets,
  allocator: Allocator,
  others: Holders,
): void {
  const references = new Map<number, number>()
  for (const set of [...ipcache.deriver.held(), ...allocator.heldSets(), ...others.labelSets]) {
    count(references, set)
  }
  checkFacts(ipcache, references, others.rows)
  checkRows(ipcache, sets, references)
  checkIdentities(ipcache, allocator)
  for (const [id, kept] of sets.references()) {
    const counted = references.get(id) ?? 0
    invariant(kept === counted, `label set ${id} is kept ${kept} times, held ${counted} times`)
    references.delete(id)
  }
  invariant(references.size === 0, `label sets ${[...references.keys()].join(', ')} live`)
}

function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** Throws if a row's list of facts is broken, or if the row's count of users is not the number of its facts, views and holders. */
function checkFacts(
  ipcache: IpCache,
  references: Map<number, number>,
  rows: Iterable<number>,
): void {
  const { prefixes, facts } = ipcache
  const users = new Map<number, number>()
  for (const row of rows) count(users, row)
  for (let row = 1; row <= prefixes.slots.high; row++) {
    const base = prefixes.scoped.base[row]!
    if (base === 0) continue
    invariant(prefixes.scoped.scope[row] !== 0, `row ${row} over row ${base} has a scope`)
    count(users, base)
  }
  let factsSeen = 0
  for (let row = 1; row <= prefixes.slots.high; row++) {
    for (let fact = prefixes.firstFact[row]!; fact !== 0; fact = facts.next[fact]!) {
      invariant(facts.prefix[fact] === row, `fact ${fact} is in the list of its row ${row}`)
      const next = facts.next[fact]!
      invariant(next === 0 || facts.previous[next] === fact, `fact ${fact} is linked both ways`)
      if (facts.set[fact] !== EMPTY_SET) count(references, facts.set[fact]!)
      count(users, row)
      factsSeen++
    }
  }
  invariant(factsSeen === facts.slots.used, `${facts.slots.used} facts are in lists: ${factsSeen}`)
  for (let row = 1; row <= prefixes.slots.high; row++) {
    const counted = users.get(row) ?? 0
    invariant(prefixes.users[row] === counted, `row ${row} has ${counted} users`)
  }
}

/** Throws if a row with facts does not have the labels that follow from its own labels and its container. */
function checkRows(ipcache: IpCache, sets: LabelSets, references: Map<number, number>): void {
  const { prefixes } = ipcache
  for (let row = 1; row <= prefixes.slots.high; row++) {
    for (const set of [prefixes.own[row]!, prefixes.derived[row]!]) {
      if (set === EMPTY_SET) continue
      invariant(sets.has(set), `label set ${set} of row ${row} lives`)
      count(references, set)
    }
    if (prefixes.firstFact[row] === 0) {
      invariant(prefixes.wanted[row] === 0, `row ${row} without facts wants no entry`)
      continue
    }
    const container = prefixes.findContainer(row)
    const derived = ipcache.deriver.derive(
      prefixes.own[row]!,
      container === 0 ? EMPTY_SET : prefixes.derived[container]!,
      identity(prefixes.addressClass[row]!),
      prefixes.family(row),
    )
    invariant(derived === prefixes.derived[row], `row ${row} has the labels of its facts`)
  }
}

/** Throws if the references of an identity are not the rows that want it, the rows that have it, and its pre-allocation. */
function checkIdentities(ipcache: IpCache, allocator: Allocator): void {
  const { prefixes } = ipcache
  const counts = new Map<number, number>()
  for (let row = 1; row <= prefixes.slots.high; row++) {
    for (const id of [prefixes.wanted[row]!, prefixes.applied[row]!]) {
      if (id !== 0 && id !== HOST) count(counts, id)
    }
  }
  for (const { id, references, preallocated } of allocator.views()) {
    const counted = (counts.get(id) ?? 0) + (preallocated ? 1 : 0)
    invariant(
      references === counted,
      `identity ${id} has ${references} references, ${counted} holders`,
    )
    counts.delete(id)
  }
  const unknown = [...counts.keys()]
  invariant(unknown.length === 0, `identities ${unknown.join(', ')} are in use`)
}
