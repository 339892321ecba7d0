// PolicyChanges lists the policy entries to write and to remove. The last change of a key wins. PolicyMaps adds changes. The committer
// calls `gather` for a commit, and `settle` when the commit has ended.
//
// Hiding entries (policy-order.ts) are written last and removed first. If some are new and some are removed at the same time, two
// commits are needed. The first removes the old hiding entries, so that the entries that they hide let packets pass again, and
// writes all other new entries. The second writes the new hiding entries and removes all other old entries.
//
// PolicyChanges costs nothing while policy entries stay the same. Learning an address under a known label set changes none.

import { FewMap } from '../core/tables/few.ts'
import type { EndpointId, Identity } from '../core/ids.ts'
import { refusedOf, type CommitResult, type PolicyEntry, type PolicyKey } from './entries.ts'
import { inWriteOrder, isHiding, pairNumber, pairOf } from './policy-order.ts'

const PORTS = 65_536
const PORT_BITS = 32
const NONE: readonly PolicyEntry[] = []

/** Entries by pair (endpoint, identity), then by protocol and port. */
type Entries = Map<number, FewMap<number, PolicyEntry>>

export class PolicyChanges {
  /** True if `gather` can find something. */
  hasChanges = false
  /** The entries that the commit writes, from `gather` to `settle`: denies before allows, hiding entries last. */
  upserts = NONE
  /** The entries that the commit removes, from `gather` to `settle`: hiding entries first, allows before denies. */
  removals = NONE
  /** True if `gather` left entries for a second commit, which has to follow at once. */
  isSplit = false
  /** How many entries of the last commit the datapath refused. */
  refused = 0
  readonly #upserts: Entries = new Map()
  readonly #removals: Entries = new Map()
  /** The pairs of `upserts`, computed when first needed. */
  #pairs: ReadonlySet<number> | undefined
  /** Identities that lack an entry because it was refused. */
  #incomplete: ReadonlySet<Identity> = new Set()

  upsert(entry: PolicyEntry): void {
    this.hasChanges = true
    drop(this.#removals, entry)
    put(this.#upserts, entry)
  }

  remove(entry: PolicyEntry): void {
    this.hasChanges = true
    drop(this.#upserts, entry)
    put(this.#removals, entry)
  }

  get count(): number {
    return this.upserts.length + this.removals.length
  }

  /** Moves the listed changes to the commit. */
  gather(): void {
    let upserts = takeAll(this.#upserts)
    let removals = takeAll(this.#removals)
    this.isSplit = !this.isSplit && upserts.some(isHiding) && removals.some(isHiding)
    if (this.isSplit) {
      for (const entry of upserts) if (isHiding(entry)) put(this.#upserts, entry)
      for (const entry of removals) if (!isHiding(entry)) put(this.#removals, entry)
      upserts = upserts.filter((entry) => !isHiding(entry))
      removals = removals.filter(isHiding)
    }
    this.hasChanges = this.isSplit
    this.#pairs = undefined
    this.upserts = inWriteOrder(upserts)
    this.removals = inWriteOrder(removals).toReversed()
  }

  /** Notes the result of a commit. Lists refused entries again, except those whose key a caller changed during the commit. */
  settle(failures: CommitResult): void {
    const upserts = refusedOf(failures, 'policy', 'upsert', this.upserts)
    const removals = refusedOf(failures, 'policy', 'remove', this.removals)
    this.upserts = NONE
    this.removals = NONE
    this.#pairs = undefined
    for (const entry of upserts) if (!this.#isDecided(entry)) put(this.#upserts, entry)
    for (const entry of removals) if (!this.#isDecided(entry)) put(this.#removals, entry)
    this.#incomplete = new Set(upserts.map((entry) => entry.identity))
    this.refused = upserts.length + removals.length
    this.hasChanges ||= this.refused > 0
  }

  /** False if the datapath refused an entry of the identity in the last commit. Entries that wait for a commit do not matter here. */
  isComplete(identity: Identity): boolean {
    return !this.#incomplete.has(identity)
  }

  /** True if an endpoint's entries for an identity still have to be written. False if one was refused: it can wait without end. */
  isPending(endpoint: EndpointId, identity: Identity): boolean {
    if (this.upserts.length === 0 && this.#upserts.size === 0) return false
    if (!this.isComplete(identity)) return false
    this.#pairs ??= new Set(this.upserts.map(pairOf))
    const pair = pairNumber(endpoint, identity)
    return this.#pairs.has(pair) || this.#upserts.has(pair)
  }

  #isDecided(entry: PolicyEntry): boolean {
    const [pair, key] = [pairOf(entry), keyOf(entry)]
    return this.#upserts.get(pair)?.has(key) === true || this.#removals.get(pair)?.has(key) === true
  }
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
