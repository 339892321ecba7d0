// Compares the desired state with the entries of the datapath. The state and the entries can change while they are read in slices. So a
// difference is reported only when a second comparison finds the same difference.
//
// A restart keeps entries of the daemon before until `state.restore-grace` ends. They are no differences while they are unchanged.
//
// Prefixes are compared by table row and without text, so a million prefixes cost one mark each. Policy entries and endpoints are compared
// by the text of their keys.

import { formatPrefix } from '../../core/ip.ts'
import type { DatapathDump, EndpointEntry, PolicyEntry } from '../../datapath/entries.ts'
import type { DifferenceShape } from '../document/shapes.ts'
import type { AdminState } from '../state.ts'
import {
  formatEndpointValue,
  formatPolicyKey,
  formatPolicyValue,
  formatPrefixKey,
  formatPrefixValue,
  formatSourceKey,
  MODE_KEY,
  SOURCE_VALUE,
} from './datapath.ts'
import { ROWS_PER_PAUSE, type Rows } from './rows.ts'

export function* differenceRows(state: AdminState): Rows<DifferenceShape> {
  const first = new Set<string>()
  for (const difference of compare(state)) {
    if (difference === undefined) yield undefined
    else first.add(JSON.stringify(difference))
  }
  if (first.size === 0) return
  for (const difference of compare(state)) {
    const same = difference === undefined || first.has(JSON.stringify(difference))
    yield same ? difference : undefined
  }
}

function* compare(state: AdminState): Rows<DifferenceShape> {
  const dump = yield* state.core.datapath.dumpInSlices()
  const mode = state.mode()
  if (mode !== dump.mode) yield { map: 'ng_mode', key: MODE_KEY, want: mode, have: dump.mode }
  yield* compareTexts('ng_endpoints', wantedEndpoints(state), heldEndpoints(dump))
  yield* compareTexts('ng_source', wantedSources(state), heldSources(dump))
  const kept = policyTexts(state.inheritedPolicies())
  yield* compareTexts('ng_policy', wantedPolicies(state), policyTexts(dump.policies), kept)
  yield* comparePrefixes(state, dump)
  const { repair } = state.core.datapath
  if (repair.kind !== 'by-daemon') return
  for (const { map, key, want, have } of repair.fixtures('all')) yield { map, key, want, have }
}

type Texts = Iterable<readonly [key: string, value: string]>

function* compareTexts(
  map: DifferenceShape['map'],
  wanted: Texts,
  held: Texts,
  kept: Texts = [],
): Rows<DifferenceShape> {
  const left = new Map(held)
  let looked = 0
  for (const [key, want] of wanted) {
    if (++looked % ROWS_PER_PAUSE === 0) yield undefined
    const have = left.get(key) ?? null
    left.delete(key)
    if (have !== want) yield { map, key, want, have }
  }
  const spared = new Map(left.size === 0 ? [] : kept)
  for (const [key, have] of left) {
    if (spared.get(key) !== have) yield { map, key, want: null, have }
  }
}

/** Endpoints whose hook exists now, with the key of the hook. */
function* hookedEndpoints({ core, endpoints }: AdminState): Iterable<[EndpointEntry, string]> {
  for (const entry of endpoints.entries()) {
    const { kind } = core.datapath.hooks.stateOf(entry.id)
    const key = core.datapath.hooks.keyOf(entry.hook)
    if (key !== undefined && (kind === 'attached' || kind === 'unfenced')) yield [entry, key]
  }
}

function* wantedEndpoints(state: AdminState): Texts {
  for (const [entry, key] of hookedEndpoints(state)) yield [key, formatEndpointValue(entry)]
}

function* heldEndpoints({ endpoints }: DatapathDump): Texts {
  for (const endpoint of endpoints) {
    if (endpoint.hookKey !== '') yield [endpoint.hookKey, formatEndpointValue(endpoint)]
  }
}

function* wantedSources(state: AdminState): Texts {
  for (const [{ id, hook, sources }] of hookedEndpoints(state)) {
    if (hook.kind === 'cgroup') continue
    for (const source of sources) yield [formatSourceKey(id, formatPrefix(source)), SOURCE_VALUE]
  }
}

function* heldSources({ endpoints }: DatapathDump): Texts {
  for (const { id, hookKey, sources } of endpoints) {
    if (hookKey === '') continue
    for (const source of sources) yield [formatSourceKey(id, formatPrefix(source)), SOURCE_VALUE]
  }
}

function* wantedPolicies({ core }: AdminState): Texts {
  for (const entry of core.policyMaps.entries()) {
    yield [formatPolicyKey(entry), formatPolicyValue(entry)]
  }
}

function* policyTexts(policies: readonly PolicyEntry[]): Texts {
  for (const entry of policies) yield [formatPolicyKey(entry), formatPolicyValue(entry)]
}

function* comparePrefixes(
  { core }: AdminState,
  { prefixes: held }: DatapathDump,
): Rows<DifferenceShape> {
  const { prefixes } = core.ipcache
  const seen = new Uint8Array(prefixes.slots.high + 1)
  for (let i = 0; i < held.count; i++) {
    if (i % ROWS_PER_PAUSE === 0) yield undefined
    const scope = held.scope(i)
    const row = prefixes.findIn(scope, held.family(i), held.octets(i), 0, held.length(i))
    seen[row] = 1
    const id = held.identity(i)
    const addressClass = held.addressClass(i)
    const wanted = prefixes.wanted[row]!
    if (wanted === id && prefixes.addressClass[row] === addressClass) continue
    if (wanted === 0 && core.inherited.has(held, i)) continue
    yield {
      map: 'ng_ipcache',
      key: formatPrefixKey(scope, held.format(i)),
      want: wanted === 0 ? null : formatPrefixValue(wanted, prefixes.addressClass[row]!),
      have: formatPrefixValue(id, addressClass),
    }
  }
  for (let row = 1; row < seen.length; row++) {
    if (row % (ROWS_PER_PAUSE * 16) === 0) yield undefined
    const wanted = prefixes.wanted[row]!
    if (wanted === 0 || seen[row] === 1) continue
    const want = formatPrefixValue(wanted, prefixes.addressClass[row]!)
    const key = formatPrefixKey(prefixes.scoped.scope[row]!, prefixes.format(row))
    yield { map: 'ng_ipcache', key, want, have: null }
  }
}
