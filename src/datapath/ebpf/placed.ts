// What is known of one endpoint in the kernel, and how that compares with what was found at its hook. Written by
// hooks.ts only.

import type { EndpointId, Generation } from '../../core/ids.ts'
import type { Prefix } from '../../core/ip.ts'
import type { EndpointEntry, Hook, HookState } from '../datapath.ts'
import type { FoundHook } from './find-hook.ts'
import { formatHookKey, type HookKey } from './layout.ts'

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
  return {
    id: entry.id,
    generation: entry.generation,
    entry: undefined,
    key: undefined,
    had: undefined,
    closed: undefined,
    sources: [],
    state: { kind: 'waiting', reason: 'not looked for yet' },
    lost: undefined,
  }
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
