// `walkDifferences` compares the entries in the kernel with the entries that the kernel confirmed, one by one. It works in steps, and the
// caller can pause between two steps. Entries can change during a walk, so a difference is real only if two walks find it. At the moment
// of the repair, repair.ts decides what to write. Prefixes are compared by table row, so a million prefixes cost one octet each.

import type { EndpointId, Identity } from '../core/ids.ts'
import { formatPrefix, type Family } from '../core/ip.ts'
import type {
  DatapathEndpoint,
  EndpointEntry,
  PolicyEntry,
  PolicyKey,
} from '../datapath/entries.ts'
import type { PrefixBatch } from '../datapath/prefix-batch.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import { policyKeyText } from './stale-entries.ts'

interface Texts {
  readonly key: string
  /** The wanted value. Null: no entry is wanted. */
  readonly want: string | null
  /** The value in the kernel. Null: the kernel has no entry. */
  readonly have: string | null
}

/** An entry of the kernel's prefix map. */
export interface KernelPrefix {
  readonly scope: number
  readonly family: Family
  /** 16 octets. */
  readonly octets: Uint8Array
  readonly length: number
  readonly identity: Identity
  readonly addressClass: Identity
}

/** One entry of a kernel's map that is not as the kernel confirmed it. */
export type KernelDifference =
  | (Texts & { readonly map: 'ng_ipcache'; readonly prefix: KernelPrefix })
  | (Texts & { readonly map: 'ng_policy'; readonly entry: PolicyKey })
  | (Texts & {
      readonly map: 'ng_endpoints'
      readonly endpoint: EndpointId
      readonly held: DatapathEndpoint | undefined
    })

export interface DifferencesOptions {
  readonly core: CoreState
  readonly endpoints: () => Iterable<EndpointEntry>
  /** Policy entries of an earlier daemon, which the restart removes later. */
  readonly inheritedPolicies: () => readonly PolicyEntry[]
}

/** Yields the differences that one walk finds, and undefined between two steps. */
export type Walk = Generator<KernelDifference | undefined>

const ROWS_PER_STEP = 256
const NONE: ReadonlySet<string> = new Set()

/** Returns a text for a difference. Equal differences have equal texts. */
export function differenceText({ map, key, want, have }: KernelDifference): string {
  return JSON.stringify([map, key, want, have])
}

/** Compares all prefixes, policy entries and endpoints once. */
export function* walkDifferences(options: DifferencesOptions): Walk {
  const dump = yield* options.core.datapath.dumpInSlices()
  yield* prefixDifferences(options, dump.prefixes)
  yield* policyDifferences(options, dump.policies)
  yield* endpointDifferences(options, dump.endpoints)
}

function* prefixDifferences({ core }: DifferencesOptions, held: PrefixBatch): Walk {
  const { prefixes } = core.ipcache
  const seen = new Uint8Array(prefixes.slots.high + 1)
  for (let i = 0; i < held.count; i++) {
    if (i % ROWS_PER_STEP === 0) yield undefined
    const row = prefixes.findIn(held.scope(i), held.family(i), held.octets(i), 0, held.length(i))
    if (row < seen.length) seen[row] = 1
    const [id, addressClass] = [held.identity(i), held.addressClass(i)]
    const applied = prefixes.applied[row]!
    if (applied === id && prefixes.appliedClass[row] === addressClass) continue
    if (applied === 0 && core.inherited.has(held, i)) continue
    yield {
      map: 'ng_ipcache',
      key: prefixKey(held.scope(i), held.format(i)),
      want: applied === 0 ? null : prefixValue(applied, prefixes.appliedClass[row]!),
      have: prefixValue(id, addressClass),
      prefix: {
        scope: held.scope(i),
        family: held.family(i),
        octets: held.octets(i).slice(0, 16),
        length: held.length(i),
        identity: id,
        addressClass,
      },
    }
  }
  for (let row = 1; row < seen.length; row++) {
    if (row % (ROWS_PER_STEP * 16) === 0) yield undefined
    if (prefixes.applied[row] === 0 || seen[row] === 1) continue
    yield missingPrefix(core, row)
  }
}

function missingPrefix({ ipcache: { prefixes } }: CoreState, row: number): KernelDifference {
  const { family, octets, length } = prefixes.prefix(row)
  const scope = prefixes.scoped.scope[row]!
  const id = prefixes.identityOf(row)
  const all = new Uint8Array(16)
  all.set(octets)
  return {
    map: 'ng_ipcache',
    key: prefixKey(scope, prefixes.format(row)),
    want: prefixValue(prefixes.applied[row]!, prefixes.appliedClass[row]!),
    have: null,
    prefix: { scope, family, octets: all, length, identity: id, addressClass: id },
  }
}

function prefixKey(scope: number, prefix: string): string {
  return scope === 0 ? prefix : `${prefix} of endpoint ${scope}`
}

function prefixValue(id: number, addressClass: number): string {
  return `identity ${id}, class ${addressClass}`
}

function* policyDifferences(
  { core, inheritedPolicies }: DifferencesOptions,
  held: readonly PolicyEntry[],
): Walk {
  const left = new Map<string, PolicyEntry>()
  for (const [i, entry] of held.entries()) {
    if (i % ROWS_PER_STEP === 0) yield undefined
    left.set(policyKeyText(entry), entry)
  }
  let looked = 0
  for (const entry of core.policyMaps.entries()) {
    if (++looked % ROWS_PER_STEP === 0) yield undefined
    const key = policyKeyText(entry)
    const [want, have] = [policyValue(entry), policyValue(left.get(key))]
    left.delete(key)
    // A missing entry can be one that the kernel refused. The committer tries it again.
    const isRefused = have === null && core.committer.refused > 0
    if (want !== have && !isRefused) yield { map: 'ng_policy', key, want, have, entry }
  }
  const spared = left.size === 0 ? NONE : new Set(inheritedPolicies().map(policyText))
  for (const [key, entry] of left) {
    if (spared.has(policyText(entry))) continue
    if (++looked % ROWS_PER_STEP === 0) yield undefined
    yield { map: 'ng_policy', key, want: null, have: policyValue(entry), entry }
  }
}

function policyText(entry: PolicyEntry): string {
  return `${policyKeyText(entry)} ${entry.verdict}`
}

function policyValue(entry: PolicyEntry | undefined): string | null {
  return entry === undefined ? null : `${entry.verdict} by rule ${entry.rule}`
}

function* endpointDifferences(
  { core, endpoints }: DifferencesOptions,
  held: readonly DatapathEndpoint[],
): Walk {
  const byKey = new Map(held.map((each) => [each.hookKey, each]))
  let looked = 0
  for (const entry of endpoints()) {
    if (++looked % ROWS_PER_STEP === 0) yield undefined
    const hookKey = core.datapath.hooks.keyOf(entry.hook)
    if (hookKey === undefined || core.datapath.hooks.stateOf(entry.id).kind !== 'attached') continue
    const found = byKey.get(hookKey)
    // A cgroup endpoint uses the host's addresses, so the kernel stores no addresses for it.
    const sources = entry.hook.kind === 'cgroup' ? (found?.sources ?? []) : entry.sources
    const [want, have] = [endpointValue({ ...entry, sources }), endpointValue(found)]
    if (want === have) continue
    yield { map: 'ng_endpoints', key: hookKey, want, have, endpoint: entry.id, held: found }
  }
}

function endpointValue(
  endpoint: Pick<EndpointEntry, keyof DatapathEndpoint & keyof EndpointEntry> | undefined,
): string | null {
  if (endpoint === undefined) return null
  const { id, enforcing, audit, scoped, sources } = endpoint
  const flags = [enforcing && 'enforcing', audit && 'audit', scoped && 'scoped'].filter(Boolean)
  const texts = sources.map(formatPrefix).toSorted()
  return `endpoint ${id}, generation ${endpoint.generation}, ${[...flags, ...texts].join(' ')}`
}
