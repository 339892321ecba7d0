// EndpointHooks is the state machine of endpoints and their hooks, for every adapter. An endpoint waits for its hook, is attached
// to it, waits again because the hook was made again, or has failed. The adapter supplies the acts. Only the adapter calls
// `upsert`, `remove` and `refresh`.
//
// An endpoint whose interface or cgroup does not exist has nothing in the kernel. One hook serves one endpoint, the newest. One
// generation has one hook. If an interface or cgroup was made again, even between two looks, it belongs to a stranger. It then
// stays closed until another generation is upserted.

import type { EndpointId, Generation } from '../../core/ids.ts'
import type { Prefix } from '../../core/ip.ts'
import type { EndpointEntry, Hook, HookState } from '../entries.ts'
import {
  formatHookKey,
  sameKey,
  type FoundHook,
  type HookKey,
  type PresentHook,
} from './find-hook.ts'
import { HookIndex, type Side } from './hook-index.ts'
import type { LinkItem } from './link-events.ts'

export interface PlacedEndpoint {
  readonly id: EndpointId
  generation: Generation
  /** Undefined if the endpoint is known only from the kernel and no upsert has claimed it yet. */
  entry: EndpointEntry | undefined
  /** The hook that the kernel has for the endpoint. */
  key: HookKey | undefined
  /** The sources that the kernel has for the endpoint. */
  sources: readonly Prefix[]
  state: HookState
  /** The hook to which this generation was attached. */
  had: HookKey | undefined
  /** The remade hook that the adapter closed. */
  closed: HookKey | undefined
  /** The formatted key of the hook that another endpoint took over. */
  lost: string | undefined
}

/** The acts of the adapter. Each act returns undefined on success, or the name of the errno. */
export interface HookActs {
  find(hook: Hook): FoundHook
  /** Writes the endpoint's sources and entry, before its programs. */
  write(placed: PlacedEndpoint, entry: EndpointEntry, found: PresentHook): string | undefined
  /** Attaches the programs. The hook already belongs to the endpoint. */
  attach(placed: PlacedEndpoint, entry: EndpointEntry, found: PresentHook): string | undefined
  /** Removes programs and entry from a hook that the endpoint leaves. */
  clear(key: HookKey, id: EndpointId): string | undefined
  /** Removes everything that the kernel has of the endpoint, except its hook. */
  strip(placed: PlacedEndpoint): void
  /** Closes a hook that was made again. */
  close(placed: PlacedEndpoint, entry: EndpointEntry, found: PresentHook): string | undefined
  /** Called when the connections of a generation have no owner any more. */
  forget(id: EndpointId, generation: Generation, sources: readonly Prefix[]): void
}

const ATTACHED: HookState = { kind: 'attached' }

export class EndpointHooks {
  readonly #acts: HookActs
  readonly #index = new HookIndex()
  readonly #placed = new Map<EndpointId, PlacedEndpoint>()
  /** The endpoint of each hook, by formatted key. */
  readonly #owners = new Map<string, EndpointId>()
  /** Endpoints whose hook was found remade during an upsert. The next `refresh` reports them. */
  readonly #unreported = new Set<EndpointId>()

  constructor(acts: HookActs) {
    this.#acts = acts
  }

  /** Restores an endpoint that the kernel has from an earlier process. It waits for an upsert to claim it, or for its removal. */
  restore(id: EndpointId, generation: Generation, key: HookKey, sources: readonly Prefix[]): void {
    this.#placed.set(id, { ...newcomer(id, generation), key, had: key, sources, state: ATTACHED })
    this.#owners.set(formatHookKey(key), id)
  }

  get(id: EndpointId): PlacedEndpoint | undefined {
    return this.#placed.get(id)
  }

  placed(): Iterable<PlacedEndpoint> {
    return this.#placed.values()
  }

  /** Returns the generation of an endpoint, or 0 if the endpoint is not known. */
  generationOf(id: EndpointId): number {
    return this.#placed.get(id)?.generation ?? 0
  }

  stateOf(id: EndpointId): HookState {
    return this.#placed.get(id)?.state ?? { kind: 'waiting', reason: 'endpoint is not known' }
  }

  keyOf(hook: Hook): string | undefined {
    const found = this.#acts.find(hook)
    return found.kind === 'present' ? formatHookKey(found.key) : undefined
  }

  ownerOf(ifindex: number): EndpointId | undefined {
    return this.#owners.get(`interface:${ifindex}`)
  }

  isOwned(key: HookKey): boolean {
    return this.#owners.has(formatHookKey(key))
  }

  /** Returns the side at which packets arrive on an interface for which an endpoint waits. */
  awaitedSide(name: string): Side | undefined {
    return this.#index.sideOf(name)
  }

  /** Puts an endpoint in force at its hook. Returns undefined on success, or the name of the errno. */
  upsert(entry: EndpointEntry): string | undefined {
    const placed = this.#placed.get(entry.id) ?? newcomer(entry.id, entry.generation)
    this.#placed.set(entry.id, placed)
    this.#index.replace(placed.id, placed.entry?.hook, entry.hook)
    const { generation: before, entry: known } = placed
    const isMoved = known !== undefined && !sameHook(known.hook, entry.hook)
    if (before !== entry.generation || isMoved) placed.had = undefined
    placed.generation = entry.generation
    placed.entry = entry
    placed.lost = undefined
    const failure = this.#place(placed)
    if (isRetired(placed)) this.#unreported.add(placed.id)
    if (before !== entry.generation) this.#acts.forget(placed.id, before, known?.sources ?? [])
    return failure
  }

  /** Removes an endpoint from the kernel. */
  remove(id: EndpointId): string | undefined {
    const placed = this.#placed.get(id)
    if (placed === undefined) return undefined
    const { entry } = placed
    // This comes first, because no endpoint waits for that interface any more.
    this.#index.replace(id, entry?.hook, undefined)
    const failure = this.#unplace(placed)
    if (failure !== undefined) {
      this.#index.replace(id, undefined, entry?.hook)
      return failure
    }
    this.#placed.delete(id)
    this.#acts.forget(id, placed.generation, entry?.sources ?? [])
    return undefined
  }

  /** Follows interfaces and cgroups that appeared, disappeared or were made again. Returns the endpoints whose state changed. */
  refresh(events: readonly LinkItem[] | 'all'): EndpointId[] {
    const changed = new Set<EndpointId>()
    for (const id of this.#index.suspects(events, (ifindex) => this.ownerOf(ifindex))) {
      const placed = this.#placed.get(id)
      if (placed?.entry === undefined) continue
      const { state, key } = placed
      if (!this.#hasChanged(placed, this.#acts.find(placed.entry.hook))) continue
      this.#place(placed)
      if (!sameState(state, placed.state) || !sameKey(key, placed.key)) changed.add(id)
    }
    for (const id of this.#unreported) changed.add(id)
    this.#unreported.clear()
    return [...changed]
  }

  /** True if the hook that was found differs from the hook in the kernel. */
  #hasChanged(placed: PlacedEndpoint, found: FoundHook): boolean {
    if (found.kind === 'absent') {
      return placed.key !== undefined || !sameState(placed.state, found.state)
    }
    if (placed.lost === formatHookKey(found.key)) return false
    return placed.state.kind !== 'attached' || !sameKey(placed.key, found.key)
  }

  #place(placed: PlacedEndpoint): string | undefined {
    const { entry } = placed
    if (entry === undefined) return undefined
    const found = this.#acts.find(entry.hook)
    if (found.kind === 'absent') {
      const failure = this.#unplace(placed)
      placed.state = found.state
      return failure
    }
    if (placed.had !== undefined && !sameKey(placed.had, found.key)) {
      return this.#retire(placed, entry, found)
    }
    const failure = this.#attach(placed, entry, found)
    if (failure === undefined) placed.had = found.key
    placed.state =
      failure === undefined
        ? ATTACHED
        : { kind: 'failed', reason: `cannot attach to ${formatHookKey(found.key)}: ${failure}` }
    return failure
  }

  /** Withdraws an endpoint whose hook was made again, because a stranger is there now. */
  #retire(placed: PlacedEndpoint, entry: EndpointEntry, found: PresentHook): string | undefined {
    if (sameKey(placed.closed, found.key)) return undefined
    const failure = this.#unplace(placed)
    const reason = `${formatHookKey(found.key)} was made again`
    placed.state = { kind: 'waiting', reason, remade: true }
    const refused = this.#acts.close(placed, entry, found)
    return failure ?? refused
  }

  #attach(placed: PlacedEndpoint, entry: EndpointEntry, found: PresentHook): string | undefined {
    const failure = this.#acts.write(placed, entry, found)
    if (failure !== undefined) return failure
    const text = formatHookKey(found.key)
    const owner = this.#owners.get(text)
    if (owner !== undefined && owner !== entry.id) this.#displace(owner, entry.id)
    this.#owners.set(text, entry.id)
    const left = placed.key
    placed.key = found.key
    if (left !== undefined && !sameKey(left, found.key)) this.#clear(left, entry.id)
    return this.#acts.attach(placed, entry, found)
  }

  /** Withdraws an endpoint whose hook another endpoint took over. */
  #displace(id: EndpointId, by: EndpointId): void {
    const placed = this.#placed.get(id)
    if (placed?.key === undefined) return
    placed.lost = formatHookKey(placed.key)
    placed.key = undefined
    this.#acts.strip(placed)
    placed.state = { kind: 'failed', reason: `its hook serves endpoint ${by} now` }
  }

  #unplace(placed: PlacedEndpoint): string | undefined {
    const failure = placed.key === undefined ? undefined : this.#clear(placed.key, placed.id)
    if (failure !== undefined) return failure
    this.#acts.strip(placed)
    placed.key = placed.closed = undefined
    return undefined
  }

  /** Clears a hook if it still belongs to this endpoint. */
  #clear(key: HookKey, id: EndpointId): string | undefined {
    const text = formatHookKey(key)
    if (this.#owners.get(text) !== id) return undefined
    const failure = this.#acts.clear(key, id)
    if (failure === undefined) this.#owners.delete(text)
    return failure
  }
}

function newcomer(id: EndpointId, generation: Generation): PlacedEndpoint {
  return {
    id,
    generation,
    entry: undefined,
    key: undefined,
    sources: [],
    state: { kind: 'waiting', reason: 'not looked for yet' },
    had: undefined,
    closed: undefined,
    lost: undefined,
  }
}

/** True if the endpoint's hook was made again and the endpoint has no other hook. */
function isRetired({ state }: PlacedEndpoint): boolean {
  return state.kind === 'waiting' && state.remade === true
}

function sameHook(a: Hook, b: Hook): boolean {
  if (a.kind === 'interface') {
    return b.kind === 'interface' && a.name === b.name && a.side === b.side
  }
  return a.kind === 'cgroup' ? b.kind === 'cgroup' && a.path === b.path : b.kind === 'none'
}

function sameState(a: HookState, b: HookState): boolean {
  if (a.kind !== b.kind) return false
  return !('reason' in a) || !('reason' in b) || a.reason === b.reason
}
