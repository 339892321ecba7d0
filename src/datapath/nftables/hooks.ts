// Endpoints and the interfaces that their packets pass. Written by the adapter only; what stands here goes into the mirror and
// from there into the kernel with the batch that the adapter writes next.
//
// The name of an endpoint's interface is fenced as long as the endpoint is known, and its index belongs to the endpoint as
// long as it is there: between two looks a new interface of that name may do DNS only. One generation has one
// interface: one that was made again is somebody else's until another generation is upserted.

import { endpointId, generation, type EndpointId, type Generation } from '../../core/ids.ts'
import type { Prefix } from '../../core/ip.ts'
import type { Posix } from '../../native/native.ts'
import type { EndpointEntry, Hook, HookState } from '../datapath.ts'
import { HookFinder } from '../ebpf/hooks/find-hook.ts'
import { LinkNews } from '../ebpf/hooks/link-news.ts'
import { sameHook, sameState } from '../ebpf/hooks/placed.ts'
import { SIDE_OUT } from './tables/dump.ts'
import { EndpointElements } from './tables/endpoint-elements.ts'
import { matches, nameRanges } from './tables/fences.ts'
import { wordAt } from './netlink/keys.ts'
import { SIDES, type Side } from './rules/layout.ts'
import type { Mirror } from './tables/mirror.ts'

interface Placed {
  readonly id: EndpointId
  generation: Generation
  /** Undefined: known from the kernel only, nobody has claimed it yet. */
  entry: EndpointEntry | undefined
  /** Interface index in the kernel's sets; 0: none. */
  index: number
  side: Side
  /** The index that this generation had. */
  had: number
  state: HookState
  /** Index that another endpoint took over. */
  lost: number
}

type Found =
  | { readonly kind: 'present'; readonly index: number }
  | { readonly kind: 'absent'; readonly state: HookState }

export interface HooksOptions {
  readonly posix: Posix
  readonly mirror: Mirror
  /** A generation is nobody's any more. */
  readonly forget: (id: EndpointId, sources: readonly Prefix[]) => void
  /** A generation is there. */
  readonly begin: (id: EndpointId, generation: Generation) => void
}

const CGROUP =
  'the nftables datapath fences interfaces only: give the endpoint an interface, or use datapath.kind ebpf'

export class Hooks {
  readonly #options: HooksOptions
  readonly #finder: HookFinder
  readonly #news: LinkNews
  readonly #elements: EndpointElements
  readonly #placed = new Map<EndpointId, Placed>()
  readonly #owners = new Map<number, EndpointId>()
  #patterns: readonly string[] = []
  /** Whether the mirror has the names of now; at first it may have those of an earlier process. */
  #isFenced = true
  #isSettled = false
  readonly #untold = new Set<EndpointId>()

  constructor(options: HooksOptions) {
    this.#options = options
    this.#finder = new HookFinder(options.posix)
    this.#news = new LinkNews(options.posix)
    this.#elements = new EndpointElements(options.mirror)
    this.#adopt()
  }

  generationOf(id: EndpointId): number {
    return this.#placed.get(id)?.generation ?? 0
  }

  stateOf(id: EndpointId): HookState {
    return this.#placed.get(id)?.state ?? { kind: 'waiting', reason: 'endpoint is not known' }
  }

  /** Interface index of an endpoint in the kernel, 0 when it has none. */
  indexOf(id: EndpointId): number {
    return this.#placed.get(id)?.index ?? 0
  }

  /** The endpoint of an interface. */
  ownerOf(index: number): EndpointId | undefined {
    return this.#owners.get(index)
  }

  sourcesOf(): Iterable<readonly [EndpointId, readonly Prefix[]]> {
    return [...this.#placed.values()].flatMap(({ id, entry, index }) =>
      entry === undefined || index === 0 ? [] : [[id, entry.sources] as const],
    )
  }

  keyOf(hook: Hook): string | undefined {
    if (hook.kind !== 'interface') return undefined
    const found = this.#find(hook)
    return found.kind === 'present' ? `interface:${found.index}` : undefined
  }

  upsert(entry: EndpointEntry): void {
    const placed = this.#placed.get(entry.id) ?? newcomer(entry)
    this.#placed.set(entry.id, placed)
    const before = placed.generation
    const isMoved = placed.entry !== undefined && !sameHook(placed.entry.hook, entry.hook)
    const sources = placed.entry?.sources ?? []
    if (before !== entry.generation || isMoved) placed.had = 0
    placed.generation = entry.generation
    placed.entry = entry
    placed.lost = 0
    this.#place(placed)
    this.#isFenced = false
    if (placed.state.kind === 'waiting' && placed.state.remade === true) this.#untold.add(placed.id)
    if (before !== entry.generation) this.#options.forget(placed.id, sources)
    this.#options.begin(placed.id, entry.generation)
  }

  remove(id: EndpointId): void {
    const placed = this.#placed.get(id)
    if (placed === undefined) return
    this.#unplace(placed)
    this.#placed.delete(id)
    this.#isFenced = false
    this.#options.forget(id, placed.entry?.sources ?? [])
  }

  /** What an endpoint was upserted with last. */
  entryOf(id: EndpointId): EndpointEntry | undefined {
    return this.#placed.get(id)?.entry
  }

  /** Follows interfaces that came, went or were made again; returns whose state changed. */
  refresh(): readonly EndpointId[] {
    const changed: EndpointId[] = [...this.#untold]
    this.#untold.clear()
    // Endpoints and patterns of this process are known: away with what an earlier one fenced.
    if (!this.#isSettled) this.#isFenced = false
    this.#isSettled = true
    const news = this.#news.take()
    const names = news === 'all' ? undefined : new Set(news.map(({ name }) => name))
    const indexes = news === 'all' ? undefined : new Set(news.map(({ ifindex }) => ifindex))
    if (names?.size === 0) return changed
    for (const placed of this.#placed.values()) {
      const hook = placed.entry?.hook
      if (hook?.kind !== 'interface') continue
      const isNews = names?.has(hook.name) ?? true
      if (!isNews && indexes?.has(placed.index) === false) continue
      const { state, index } = placed
      this.#place(placed)
      const isSame = sameState(state, placed.state) && index === placed.index
      if (!isSame && !changed.includes(placed.id)) changed.push(placed.id)
    }
    return changed
  }

  /** Tells the mirror which names are fenced now; before each write. */
  settle(): void {
    if (this.#isFenced) return
    this.#isFenced = true
    for (const side of SIDES) {
      const names = [...this.#namesOf(side), ...(side === 'in' ? this.#patterns : [])]
      this.#options.mirror.replace(`fences_${side}`, nameRanges(names))
    }
  }

  watch(onNews: () => void): boolean {
    return this.#news.watch(onNews)
  }

  fence(patterns: readonly string[]): void {
    this.#patterns = patterns
    this.#isFenced = false
  }

  /** Names of interfaces that are fenced and there, sorted. */
  fenced(): readonly string[] {
    const names = [...this.#namesOf('in'), ...this.#namesOf('out'), ...this.#patterns]
    return this.#news
      .list()
      .filter(({ ifindex }) => !this.#owners.has(ifindex))
      .map(({ name }) => name)
      .filter((name) => names.some((pattern) => matches(pattern, name)))
      .toSorted()
  }

  close(): void {
    this.#news.close()
  }

  /** What the kernel holds from before; each waits to be claimed by an upsert, or removed. */
  #adopt(): void {
    for (const { key, data: value } of this.#options.mirror.list('endpoints')) {
      if (value === undefined) continue
      const id = endpointId(wordAt(key, 0))
      const index = wordAt(value, 8)
      this.#owners.set(index, id)
      this.#placed.set(id, {
        id,
        generation: generation(wordAt(value, 0)),
        entry: undefined,
        index,
        side: (wordAt(value, 4) & SIDE_OUT) === 0 ? 'in' : 'out',
        had: index,
        state: { kind: 'attached' },
        lost: 0,
      })
    }
  }

  #find(hook: Hook): Found {
    if (hook.kind === 'cgroup') {
      return { kind: 'absent', state: { kind: 'failed', reason: CGROUP } }
    }
    const found = this.#finder.find(hook)
    if (found.kind === 'absent') return found
    const index = found.key.id
    if (this.#options.posix.ifMaster(index) > 0 && hook.kind === 'interface') {
      const reason = `interface ${hook.name} is a port of a bridge: the nftables datapath sees only what is routed: use datapath.kind ebpf`
      return { kind: 'absent', state: { kind: 'failed', reason } }
    }
    return { kind: 'present', index }
  }

  #place(placed: Placed): void {
    const { entry } = placed
    if (entry === undefined) return
    const found = this.#find(entry.hook)
    if (found.kind === 'absent') {
      this.#unplace(placed)
      placed.state = found.state
    } else if (placed.lost === found.index) {
      return
    } else if (placed.had !== 0 && placed.had !== found.index) {
      this.#unplace(placed)
      const reason = `interface:${found.index} was made again`
      placed.state = { kind: 'waiting', reason, remade: true }
    } else {
      this.#write(placed, entry, found.index)
    }
  }

  #write(placed: Placed, entry: EndpointEntry, index: number): void {
    const owner = this.#owners.get(index)
    const other = owner === undefined ? undefined : this.#placed.get(owner)
    if (other !== undefined && other !== placed) this.#displace(other, placed.id)
    if (placed.index !== 0 && placed.index !== index) this.#unplace(placed)
    const side: Side =
      entry.hook.kind === 'interface' && entry.hook.side === 'egress' ? 'out' : 'in'
    if (placed.index !== 0 && placed.side !== side) this.#unplace(placed)
    placed.index = placed.had = index
    placed.side = side
    placed.state = { kind: 'attached' }
    this.#owners.set(index, placed.id)
    this.#elements.put(entry, index, side)
  }

  /** Another endpoint took the interface over. */
  #displace(placed: Placed, by: EndpointId): void {
    placed.lost = placed.index
    this.#unplace(placed)
    placed.state = { kind: 'failed', reason: `its hook serves endpoint ${by} now` }
  }

  #unplace(placed: Placed): void {
    const { id, index, side } = placed
    if (index === 0) return
    placed.index = 0
    const isOwner = this.#owners.get(index) === id
    if (isOwner) this.#owners.delete(index)
    this.#elements.clear(id, isOwner ? index : 0, side)
  }

  /** Names of interfaces that endpoints of a side wait for or have. */
  #namesOf(side: Side): readonly string[] {
    return [...this.#placed.values()].flatMap(({ entry }) => {
      if (entry?.hook.kind !== 'interface') return []
      return (entry.hook.side === 'egress') === (side === 'out') ? [entry.hook.name] : []
    })
  }
}

function newcomer(entry: EndpointEntry): Placed {
  return {
    id: entry.id,
    generation: entry.generation,
    entry: undefined,
    index: 0,
    side: 'in',
    had: 0,
    state: { kind: 'waiting', reason: 'not looked for yet' },
    lost: 0,
  }
}
