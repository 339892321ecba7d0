// `inWriteOrder` sorts policy entries into the order in which a commit writes them. Removals use the reverse order. So a packet that policy
// allows before and after a commit passes during the commit, and no packet passes that policy denies before and after it:
//   1. denies;
//   2. denies with more specific entries inside that let packets pass, and these entries, the most specific first. Rules of tiers make such
//      entries (policy/compile/tiers.ts). The longest match of a packet is then always its match before or its match after the commit;
//   3. entries that let packets pass;
//   4. hiding entries: `audit-deny` and `weak-deny`. They let nothing pass, but hide wider entries that do.

import type { EndpointId, Identity } from '../core/ids.ts'
import type { PolicyEntry, PolicyKey } from './entries.ts'
import { covers, specificity } from './verdict.ts'

/** More than the highest identity, so that one exact number can stand for a pair of endpoint and identity. */
const IDENTITIES = 2 ** 25
/** More than the highest specificity. */
const SPECIFICITIES = 32

/** Returns one number for a pair of endpoint and identity. */
export function pairNumber(endpoint: EndpointId, identity: Identity): number {
  return endpoint * IDENTITIES + identity
}

export function pairOf({ endpoint, identity }: PolicyKey): number {
  return pairNumber(endpoint, identity)
}

/** True for an entry that lets nothing pass, but hides a wider entry that does. */
export function isHiding({ verdict }: PolicyEntry): boolean {
  return verdict === 'audit-deny' || verdict === 'weak-deny'
}

/** Returns the entries in the order of the header. */
export function inWriteOrder(entries: readonly PolicyEntry[]): readonly PolicyEntry[] {
  if (entries.length < 2) return entries
  const nested = pairsWithNested(entries)
  return entries.toSorted((a, b) => turnOf(a, nested) - turnOf(b, nested))
}

function turnOf(entry: PolicyEntry, nested: ReadonlySet<number>): number {
  if (isHiding(entry)) return 3 * SPECIFICITIES
  if (nested.has(pairOf(entry))) return 2 * SPECIFICITIES - 1 - specificity(entry)
  return entry.verdict === 'deny' ? 0 : 2 * SPECIFICITIES
}

/** Returns the pairs that have a deny with an entry inside that lets packets pass. */
function pairsWithNested(entries: readonly PolicyEntry[]): ReadonlySet<number> {
  const nested = new Set<number>()
  const denies = new Map<number, PolicyEntry[]>()
  for (const entry of entries) {
    if (entry.verdict !== 'deny') continue
    const known = denies.get(pairOf(entry))
    if (known === undefined) denies.set(pairOf(entry), [entry])
    else known.push(entry)
  }
  if (denies.size === 0) return nested
  for (const entry of entries) {
    if (entry.verdict === 'deny' || isHiding(entry)) continue
    const pair = pairOf(entry)
    if (!nested.has(pair) && denies.get(pair)?.some((deny) => isInside(entry, deny)) === true) {
      nested.add(pair)
    }
  }
  return nested
}

function isInside(entry: PolicyEntry, wide: PolicyEntry): boolean {
  return specificity(wide) < specificity(entry) && covers(wide, entry.protocol, entry.port)
}
