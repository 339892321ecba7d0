// What is known of one endpoint in the kernel, and how that compares with what was found at its hook. Written by
// hooks.ts only.

import type { EndpointId, Generation } from '../../../core/ids.ts'
import type { Prefix } from '../../../core/ip.ts'
import type { EndpointEntry, Hook, HookState } from '../../datapath.ts'
import type { FoundHook } from './find-hook.ts'
import type { KernelMap } from '../maps/kernel-map.ts'
import { decodeEndpoint, decodeHookKey, formatHookKey, type HookKey } from '../maps/layout.ts'
import type { Sources } from '../maps/sources.ts'

const ATTACHED: HookState = { kind: 'attached' }

export interface Placed {
  readonly id: EndpointId
  generation: Generation
  /** Undefined: known from the kernel only, nobody has claimed it yet. */
  entry: EndpointEntry | undefined
  /** What stands in ng_endpoints for it. */
  key: HookKey | undefined
  sources: readonly Prefix[]
  state: HookState
  /** The hook that this generation was attached to. */
  had: HookKey | undefined
  /** A cgroup that carries the programs without an entry, so that nothing passes. */
  closed: HookKey | undefined
  /** Formatted key of the hook that another endpoint took over. */
  lost: string | undefined
}

/** An endpoint that nothing was done for yet. */
export function newcomer(entry: EndpointEntry): Placed {
  return newcomerOf(entry.id, entry.generation)
}

function newcomerOf(id: EndpointId, generation: Generation): Placed {
  return {
    id,
    generation,
    entry: undefined,
    key: undefined,
    had: undefined,
    closed: undefined,
    sources: [],
    state: { kind: 'waiting', reason: 'not looked for yet' },
    lost: undefined,
  }
}

/** What the kernel holds from before; each waits to be claimed by an upsert, or removed. Sources of nobody are removed. */
export function placedBefore(endpoints: KernelMap, sources: Sources): readonly Placed[] {
  const found: Placed[] = []
  const held = sources.read()
  endpoints.forEach((keys, keyAt, values, valueAt) => {
    const { id, generation, fenced } = decodeEndpoint(values, valueAt)
    if (fenced) return
    const key = decodeHookKey(keys, keyAt)
    const own = held.get(id) ?? []
    found.push({ ...newcomerOf(id, generation), key, had: key, sources: own, state: ATTACHED })
    held.delete(id)
  })
  for (const [id, orphans] of held) sources.remove(id, orphans, [])
  return found
}

/** Whether what was found differs from what is in the kernel. */
export function isNews(placed: Placed, found: FoundHook): boolean {
  if (found.kind === 'absent') {
    return placed.key !== undefined || !sameState(placed.state, found.state)
  }
  if (placed.lost === formatHookKey(found.key)) return false
  return placed.state.kind !== 'attached' || !sameKey(placed.key, found.key)
}

/** Its hook was made again and it has no other. */
export function isRetired({ state }: Placed): boolean {
  return state.kind === 'waiting' && state.remade === true
}

export function sameHook(a: Hook, b: Hook): boolean {
  if (a.kind === 'interface') {
    return b.kind === 'interface' && a.name === b.name && a.side === b.side
  }
  return a.kind === 'cgroup' ? b.kind === 'cgroup' && a.path === b.path : b.kind === 'none'
}

export function sameKey(a: HookKey | undefined, b: HookKey | undefined): boolean {
  return a?.kind === b?.kind && a?.id === b?.id
}

export function sameState(a: HookState, b: HookState): boolean {
  if (a.kind !== b.kind) return false
  return !('reason' in a) || !('reason' in b) || a.reason === b.reason
}
