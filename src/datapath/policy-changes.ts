// Policy entries to write and to remove, until a commit takes them, by endpoint and identity, then by protocol and port; the last change of a
// key wins. Written by the policy maps. `take` hands over new denies before new allows, old allows before old denies, and audited denies
// last and first. `putBack` returns what a commit could not place. When audited denies come and go together, two commits do it: the old
// ones hide entries that let pass until they are out, and the new ones end what passed.
//
// Costs nothing while nothing changes: learning under known label sets never comes here.

import { FewMap } from '../core/tables/few-map.ts'
import type { EndpointId, Identity } from '../core/ids.ts'
import type { PolicyEntry, PolicyKey } from './entries.ts'

export interface PolicyTurn {
  readonly upserts: readonly PolicyEntry[]
  readonly removals: readonly PolicyEntry[]
}

/** Above the highest identity: a pair of endpoint and identity is one exact number. */
const IDENTITIES = 2 ** 25
const PORTS = 65_536
const PORT_BITS = 32
const NONE: readonly PolicyEntry[] = []

/** By pair, then by protocol and port. */
type Entries = Map<number, FewMap<number, PolicyEntry>>

export class PolicyChanges {
  readonly #upserts: Entries = new Map()
  readonly #removals: Entries = new Map()
  /** Whether `take` left entries for the next commit, which is to follow at once. */
  isSplit = false

  upsert(entry: PolicyEntry): void {
    drop(this.#removals, entry)
    put(this.#upserts, entry)
  }

  remove(entry: PolicyEntry): void {
    drop(this.#upserts, entry)
    put(this.#removals, entry)
  }

  /** Hands over what is to be done. */
  take(): PolicyTurn {
    let upserts = takeAll(this.#upserts)
    let removals = takeAll(this.#removals)
    this.isSplit = !this.isSplit && upserts.some(isAuditDeny) && removals.some(isAuditDeny)
    if (this.isSplit) {
      for (const entry of upserts) if (isAuditDeny(entry)) put(this.#upserts, entry)
      for (const entry of removals) if (!isAuditDeny(entry)) put(this.#removals, entry)
      upserts = upserts.filter((entry) => !isAuditDeny(entry))
      removals = removals.filter(isAuditDeny)
    }
    return {
      upserts: upserts.length < 2 ? upserts : upserts.toSorted((a, b) => turnOf(a) - turnOf(b)),
      removals: removals.length < 2 ? removals : removals.toSorted((a, b) => turnOf(b) - turnOf(a)),
    }
  }

  /** Lists entries again that were refused, unless something else was decided on their keys meanwhile. */
  putBack({ upserts, removals }: PolicyTurn): void {
    for (const entry of upserts) if (!this.#isDecided(entry)) put(this.#upserts, entry)
    for (const entry of removals) if (!this.#isDecided(entry)) put(this.#removals, entry)
  }

  /** Whether an endpoint's entries for an identity are still to be written. */
  hasUpserts(endpoint: EndpointId, identity: Identity): boolean {
    return this.#upserts.size > 0 && this.#upserts.has(pairNumber(endpoint, identity))
  }

  #isDecided(entry: PolicyEntry): boolean {
    const [pair, key] = [pairOf(entry), keyOf(entry)]
    return this.#upserts.get(pair)?.has(key) === true || this.#removals.get(pair)?.has(key) === true
  }
}

/** One number for an endpoint and an identity. */
export function pairNumber(endpoint: EndpointId, identity: Identity): number {
  return endpoint * IDENTITIES + identity
}

export function pairOf({ endpoint, identity }: PolicyKey): number {
  return pairNumber(endpoint, identity)
}

function keyOf({ protocol, port, portBits }: PolicyKey): number {
  return (protocol * PORT_BITS + portBits) * PORTS + port
}

function put(entries: Entries, entry: PolicyEntry): void {
  const pair = pairOf(entry)
  let known = entries.get(pair)
  if (known === undefined) entries.set(pair, (known = new FewMap()))
  known.set(keyOf(entry), entry)
}

function drop(entries: Entries, entry: PolicyEntry): void {
  if (entries.size === 0) return
  const pair = pairOf(entry)
  const known = entries.get(pair)
  if (known?.delete(keyOf(entry)) === true && known.size === 0) entries.delete(pair)
}

function takeAll(entries: Entries): readonly PolicyEntry[] {
  if (entries.size === 0) return NONE
  const all: PolicyEntry[] = []
  const take = (entry: PolicyEntry): void => void all.push(entry)
  for (const pair of entries.values()) pair.forEach(take)
  entries.clear()
  return all
}

function isAuditDeny({ verdict }: PolicyEntry): boolean {
  return verdict === 'audit-deny'
}

/**
 * When an entry is written: denies first, then what lets pass. What audited rules deny comes last and goes first: it lets
 * nothing pass, but hides a wider entry that does.
 */
function turnOf({ verdict }: PolicyEntry): number {
  return verdict === 'deny' ? 0 : verdict === 'audit-deny' ? 2 : 1
}
