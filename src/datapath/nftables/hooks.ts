// Hooks carries out the acts of the nftables datapath at interfaces. It changes elements in the mirror, and the adapter's next
// batch writes them to the kernel. The state machine is in src/datapath/hooks/endpoint-hooks.ts. Only the adapter writes here.
//
// The name of an endpoint's interface is fenced for as long as the endpoint is known. The interface's index belongs to the
// endpoint for as long as the interface exists. So between two looks a new interface of that name may do DNS only.

import { endpointId, generation, type EndpointId, type Generation } from '../../core/ids.ts'
import type { Prefix } from '../../core/ip.ts'
import type { Posix } from '../../native/native.ts'
import type { EndpointEntry, Hook, HookState } from '../entries.ts'
import { EndpointHooks, type HookActs, type PlacedEndpoint } from '../hooks/endpoint-hooks.ts'
import { HookFinder, type FoundHook, type HookKey, type PresentHook } from '../hooks/find-hook.ts'
import { LinkEvents } from '../hooks/link-events.ts'
import { wordAt } from './netlink/keys.ts'
import { SIDES, type Side } from './rules/layout.ts'
import { SIDE_OUT } from './tables/dump.ts'
import { EndpointElements } from './tables/endpoints.ts'
import { matches, nameRanges } from './tables/fences.ts'
import type { Mirror } from './tables/mirror.ts'

export interface HooksOptions {
  readonly posix: Posix
  readonly mirror: Mirror
  /** Called when a generation has no owner any more. */
  readonly forget: (id: EndpointId, sources: readonly Prefix[]) => void
  /** Called when an endpoint is upserted with this generation. */
  readonly begin: (id: EndpointId, generation: Generation) => void
}

const CGROUP =
  'the nftables datapath fences interfaces only: give the endpoint an interface, or use datapath.kind ebpf'

export class Hooks implements HookActs {
  readonly #options: HooksOptions
  readonly #finder: HookFinder
  readonly #linkEvents: LinkEvents
  readonly #elements: EndpointElements
  readonly #endpoints: EndpointHooks = new EndpointHooks(this)
  #patterns: readonly string[] = []
  /** True if the mirror has the names to fence. At first it may have the names of an earlier process. */
  #isFenced = true
  #isSettled = false

  constructor(options: HooksOptions) {
    this.#options = options
    this.#finder = new HookFinder(options.posix)
    this.#linkEvents = new LinkEvents(options.posix)
    this.#elements = new EndpointElements(options.mirror)
    this.#restore()
  }

  generationOf(id: EndpointId): number {
    return this.#endpoints.generationOf(id)
  }

  stateOf(id: EndpointId): HookState {
    return this.#endpoints.stateOf(id)
  }

  keyOf(hook: Hook): string | undefined {
    return this.#endpoints.keyOf(hook)
  }

  /** Returns the interface index of an endpoint in the kernel, or 0 if it has none. */
  indexOf(id: EndpointId): number {
    return this.#endpoints.get(id)?.key?.id ?? 0
  }

  /** Returns the endpoint of an interface. */
  ownerOf(index: number): EndpointId | undefined {
    return this.#endpoints.ownerOf(index)
  }

  /** Returns the entry with which an endpoint was upserted last. */
  entryOf(id: EndpointId): EndpointEntry | undefined {
    return this.#endpoints.get(id)?.entry
  }

  sourcesOf(): Iterable<readonly [EndpointId, readonly Prefix[]]> {
    return [...this.#endpoints.placed()].flatMap(({ id, entry, key }) =>
      entry === undefined || key === undefined ? [] : [[id, entry.sources] as const],
    )
  }

  upsert(entry: EndpointEntry): void {
    this.#isFenced = false
    this.#endpoints.upsert(entry)
    this.#options.begin(entry.id, entry.generation)
  }

  remove(id: EndpointId): void {
    this.#isFenced = false
    this.#endpoints.remove(id)
  }

  /** Follows interfaces that appeared, disappeared or were made again. Returns the endpoints whose state changed. */
  refresh(): readonly EndpointId[] {
    // At the first look, endpoints and patterns of this process are known, so names that only an earlier process fenced are
    // removed.
    if (!this.#isSettled) this.#isFenced = false
    this.#isSettled = true
    return this.#endpoints.refresh(this.#linkEvents.take())
  }

  /** Writes the names to fence into the mirror. The adapter calls this before each batch. */
  settle(): void {
    if (this.#isFenced) return
    this.#isFenced = true
    for (const side of SIDES) {
      const names = [...this.#namesOf(side), ...(side === 'in' ? this.#patterns : [])]
      this.#options.mirror.replace(`fences_${side}`, nameRanges(names))
    }
  }

  watch(onNews: () => void): boolean {
    return this.#linkEvents.watch(onNews)
  }

  fence(patterns: readonly string[]): void {
    this.#patterns = patterns
    this.#isFenced = false
  }

  /** The names of existing interfaces that are fenced, sorted. */
  fenced(): readonly string[] {
    const names = [...this.#namesOf('in'), ...this.#namesOf('out'), ...this.#patterns]
    return this.#linkEvents
      .list()
      .filter(({ ifindex }) => this.ownerOf(ifindex) === undefined)
      .map(({ name }) => name)
      .filter((name) => names.some((pattern) => matches(pattern, name)))
      .toSorted()
  }

  stop(): void {
    this.#linkEvents.close()
  }

  find(hook: Hook): FoundHook {
    if (hook.kind === 'cgroup') return failed(CGROUP)
    const found = this.#finder.find(hook)
    if (found.kind === 'absent' || hook.kind !== 'interface') return found
    if (this.#options.posix.ifMaster(found.key.id) <= 0) return found
    return failed(
      `interface ${hook.name} is a port of a bridge: the nftables datapath sees only what is routed: use datapath.kind ebpf`,
    )
  }

  write(_: PlacedEndpoint, entry: EndpointEntry, found: PresentHook): undefined {
    this.#elements.put(entry, found.key.id, sideOf(entry))
  }

  /** Does nothing, because the rules are already there. */
  attach(): undefined {}

  clear(key: HookKey): undefined {
    this.#elements.clearHook(key.id)
  }

  strip({ id }: PlacedEndpoint): void {
    this.#elements.clear(id)
  }

  /** Does nothing, because the name of a remade interface is fenced. */
  close(): undefined {}

  forget(id: EndpointId, _: Generation, sources: readonly Prefix[]): void {
    this.#options.forget(id, sources)
  }

  /** Restores what an earlier process left in the kernel. */
  #restore(): void {
    for (const { key, data: value } of this.#options.mirror.list('endpoints')) {
      if (value === undefined) continue
      const id = endpointId(wordAt(key, 0))
      const index = wordAt(value, 8)
      const hook = { kind: 'interface', id: index } as const
      this.#elements.restoreHook(index, (wordAt(value, 4) & SIDE_OUT) === 0 ? 'in' : 'out')
      this.#endpoints.restore(id, generation(wordAt(value, 0)), hook, [])
    }
  }

  /** The names of interfaces that endpoints of a side have or wait for. */
  #namesOf(side: Side): readonly string[] {
    return [...this.#endpoints.placed()].flatMap(({ entry }) => {
      if (entry?.hook.kind !== 'interface') return []
      return sideOf(entry) === side ? [entry.hook.name] : []
    })
  }
}

function failed(reason: string): FoundHook {
  return { kind: 'absent', state: { kind: 'failed', reason } }
}

/** Returns whether the endpoint's packets arrive at its interface (in) or leave by it (out). */
function sideOf({ hook }: EndpointEntry): Side {
  return hook.kind === 'interface' && hook.side === 'egress' ? 'out' : 'in'
}
