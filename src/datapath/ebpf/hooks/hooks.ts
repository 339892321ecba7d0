// Endpoints and the hooks that their packets pass: what is in ng_endpoints and ng_source, which programs are
// attached, and what is still waited for. Written by the adapter only.
//
// Always: what is in ng_endpoints has its sources in ng_source, and a hook has its entry before it has a
// program and loses the program before the entry, so that nothing is judged by half. An endpoint whose
// interface or cgroup isn't there has nothing in the kernel. One hook serves one endpoint, the newest. One generation
// has one hook: an interface or cgroup that was made again, even between two looks, is somebody else's, and
// stays closed until another generation is upserted.

import type { EndpointId, Generation } from '../../../core/ids.ts'
import type { Prefix } from '../../../core/ip.ts'
import { errnoName, type Bpf, type Posix } from '../../../native/native.ts'
import type { EndpointEntry, Hook, HookState } from '../../datapath.ts'
import { attachCgroup, attachInterface, detach, type Programs } from './attach.ts'
import { HookFinder, type PresentHook } from './find-hook.ts'
import { markAttached, writeEntry } from './entry-writer.ts'
import { Fences } from './fences.ts'
import type { Gate } from './gate.ts'
import { HookIndex } from './hook-index.ts'
import type { KernelMap } from '../maps/kernel-map.ts'
import { encodeHookKey, formatHookKey, type HookKey } from '../maps/layout.ts'
import { LinkNews } from './link-news.ts'
import {
  isNews,
  isRetired,
  newcomer,
  placedBefore,
  sameHook,
  sameKey,
  sameState,
  type Placed,
} from './placed.ts'
import type { Sources } from '../maps/sources.ts'

export interface HooksOptions {
  readonly bpf: Bpf
  readonly posix: Posix
  readonly programs: Programs
  /** Pin directory of cgroup links. */
  readonly links: string
  readonly endpoints: KernelMap
  readonly sources: Sources
  readonly gate: Gate
  /** Called when the connections of a generation are nobody's any more. */
  readonly forget: (id: EndpointId, generation: Generation) => void
}

export class Hooks {
  readonly #options: HooksOptions
  readonly #finder: HookFinder
  readonly #index: HookIndex
  readonly #news: LinkNews
  /** Interfaces without an endpoint. */
  readonly fences: Fences
  /** Interfaces with programs of which there was news: it may be that they have them no more. Cleared by whoever looks. */
  readonly touched = new Set<number>()
  readonly #placed = new Map<EndpointId, Placed>()
  /** Who stands in ng_endpoints, by formatted hook key. */
  readonly #owners = new Map<string, EndpointId>()

  #settled = false
  /** Retired while they were upserted; `refresh` tells of them. */
  readonly #untold = new Set<EndpointId>()
  #onTouched: () => void = () => undefined

  constructor(options: HooksOptions) {
    this.#options = options
    this.#finder = new HookFinder(options.posix)
    this.#index = new HookIndex(options.gate)
    this.#news = new LinkNews(options.posix)
    this.fences = new Fences({
      ...options,
      news: this.#news,
      awaitedSide: (name) => this.#index.sideOf(name),
      isOwned: (ifindex) => this.#ownerOf(ifindex) !== undefined,
    })
    for (const placed of placedBefore(options.endpoints, options.sources)) {
      this.#placed.set(placed.id, placed)
      if (placed.key !== undefined) this.#owners.set(formatHookKey(placed.key), placed.id)
    }
  }

  /** The generation that an endpoint has, 0 when it is not known. */
  generationOf(id: EndpointId): number {
    return this.#placed.get(id)?.generation ?? 0
  }

  stateOf(id: EndpointId): HookState {
    return this.#placed.get(id)?.state ?? { kind: 'waiting', reason: 'endpoint is not known' }
  }

  /** What the kernel knows a hook by at this moment. */
  keyOf(hook: Hook): string | undefined {
    const found = this.#finder.find(hook)
    return found.kind === 'present' ? formatHookKey(found.key) : undefined
  }

  placed(): Iterable<Placed> {
    return this.#placed.values()
  }

  /** Where an endpoint is in the kernel. */
  placeOf(id: EndpointId): HookKey | undefined {
    return this.#placed.get(id)?.key
  }

  /** Writes and attaches an endpoint; undefined, or the name of the errno that stopped it. */
  upsert(entry: EndpointEntry): string | undefined {
    const placed = this.#placed.get(entry.id) ?? newcomer(entry)
    this.#placed.set(entry.id, placed)
    this.#index.replace(placed.id, placed.entry?.hook, entry.hook)
    const before = placed.generation
    const isMoved = placed.entry !== undefined && !sameHook(placed.entry.hook, entry.hook)
    if (before !== entry.generation || isMoved) placed.had = undefined
    placed.generation = entry.generation
    placed.entry = entry
    placed.lost = undefined
    const failure = this.#place(placed)
    if (isRetired(placed)) this.#untold.add(placed.id)
    if (before !== entry.generation) this.#options.forget(placed.id, before)
    return failure
  }

  /** Writes an endpoint again, whatever was believed to be there; `held`: its sources in the kernel. */
  rewrite(entry: EndpointEntry, held: readonly Prefix[]): void {
    const placed = this.#placed.get(entry.id)
    if (placed === undefined) return
    placed.sources = held
    this.upsert(entry)
  }

  /** Takes an endpoint out: program, entry, sources, in this order. */
  remove(id: EndpointId): string | undefined {
    const placed = this.#placed.get(id)
    if (placed === undefined) return undefined
    const { entry } = placed
    // Before its place is cleared: nobody waits for that interface any more.
    this.#index.replace(id, entry?.hook, undefined)
    const failure = this.#unplace(placed)
    if (failure !== undefined) {
      this.#index.replace(id, undefined, entry?.hook)
      return failure
    }
    if (entry?.hook.kind === 'interface') this.fences.lookAt(entry.hook.name)
    this.#placed.delete(id)
    this.#options.forget(id, placed.generation)
    return undefined
  }

  /** Follows interfaces and cgroups that came, went or were made again; returns whose state changed. */
  refresh(): readonly EndpointId[] {
    const changed: EndpointId[] = []
    if (!this.#settled) this.fences.settle()
    this.#settled = true
    const news = this.#news.take()
    for (const id of this.#index.suspects(news, (ifindex) => this.#ownerOf(ifindex))) {
      const placed = this.#placed.get(id)
      if (placed?.entry === undefined) continue
      const { state, key } = placed
      if (!isNews(placed, this.#finder.find(placed.entry.hook))) continue
      this.#place(placed)
      if (!sameState(state, placed.state) || !sameKey(key, placed.key)) changed.push(id)
    }
    this.fences.follow(news)
    for (const { ifindex } of news === 'all' ? [] : news) {
      if (this.#ownerOf(ifindex) !== undefined || this.fences.has(ifindex))
        this.touched.add(ifindex)
    }
    for (const id of this.#untold) if (!changed.includes(id)) changed.push(id)
    this.#untold.clear()
    if (this.touched.size > 0) this.#onTouched()
    return changed
  }

  onTouched(listener: () => void): void {
    this.#onTouched = listener
  }

  /** Calls `onNews` when there is something for `refresh`; false: it cannot be heard here. */
  watch(onNews: () => void): boolean {
    return this.#news.watch(onNews)
  }

  close(): void {
    this.#news.close()
  }

  #ownerOf(ifindex: number): EndpointId | undefined {
    return this.#owners.get(`interface:${ifindex}`)
  }

  #place(placed: Placed): string | undefined {
    const { entry } = placed
    if (entry === undefined) return undefined
    const found = this.#finder.find(entry.hook)
    if (found.kind === 'absent') {
      const failure = this.#unplace(placed)
      placed.state = found.state
      return failure
    }
    if (placed.had !== undefined && !sameKey(placed.had, found.key)) {
      return this.#retire(placed, entry, found)
    }
    const failure = this.#write(placed, entry, found) ?? this.#attach(entry, found)
    if (failure === undefined) placed.had = found.key
    placed.state =
      failure === undefined
        ? { kind: 'attached' }
        : { kind: 'failed', reason: `cannot attach to ${formatHookKey(found.key)}: ${failure}` }
    return failure
  }

  /** Its hook was made again, so who is there now is a stranger. An interface is fenced; on a cgroup the programs without
   *  an entry let nothing pass. */
  #retire(placed: Placed, entry: EndpointEntry, found: PresentHook): string | undefined {
    if (sameKey(placed.closed, found.key)) return undefined
    const failure = this.#unplace(placed)
    const reason = `${formatHookKey(found.key)} was made again`
    placed.state = { kind: 'waiting', reason, remade: true }
    if (found.key.kind === 'cgroup') {
      placed.closed = found.key
      return failure ?? this.#attach(entry, found)
    }
    this.fences.takeOver(found.key.id)
    return failure
  }

  #attach(entry: EndpointEntry, found: PresentHook): string | undefined {
    const { bpf, programs, links } = this.#options
    const failure =
      entry.hook.kind === 'interface'
        ? attachInterface(bpf, programs, found.key.id, entry.hook.side)
        : attachCgroup(bpf, programs, links, found.key, found.path)
    return failure ?? markAttached(this.#options.endpoints, found.key)
  }

  /** New sources, the endpoint itself, then away with what it had before. */
  #write(placed: Placed, entry: EndpointEntry, found: PresentHook): string | undefined {
    const { sources, endpoints } = this.#options
    const scoped = entry.scoped === true
    const value = { ...entry, scoped, fenced: false, layer3: found.layer3 }
    const errno = sources.add(entry.id, entry.sources, placed.sources)
    if (errno !== 0) return errnoName(errno)
    const failure = writeEntry(endpoints, found.key, value)
    if (failure !== undefined) return failure
    const text = formatHookKey(found.key)
    const owner = this.#owners.get(text)
    if (owner !== undefined && owner !== entry.id) this.#displace(owner, entry.id)
    this.#owners.set(text, entry.id)
    if (found.key.kind === 'interface') this.fences.giveUp(found.key.id)
    const left = placed.key
    placed.key = found.key
    if (left !== undefined && !sameKey(left, found.key)) this.#clear(left, entry.id)
    const stale = placed.sources
    placed.sources = entry.sources
    sources.remove(entry.id, stale, entry.sources)
    return undefined
  }

  /** Another endpoint took the hook over. */
  #displace(id: EndpointId, by: EndpointId): void {
    const placed = this.#placed.get(id)
    if (placed?.key === undefined) return
    placed.lost = formatHookKey(placed.key)
    placed.key = undefined
    this.#options.sources.remove(id, placed.sources, [])
    placed.sources = []
    placed.state = { kind: 'failed', reason: `its hook serves endpoint ${by} now` }
  }

  #unplace(placed: Placed): string | undefined {
    const failure = placed.key === undefined ? undefined : this.#clear(placed.key, placed.id)
    if (failure !== undefined) return failure
    const { closed } = placed
    if (closed !== undefined && !this.#owners.has(formatHookKey(closed))) {
      detach(this.#options.bpf, this.#options.links, closed)
    }
    placed.key = placed.closed = undefined
    this.#options.sources.remove(placed.id, placed.sources, [])
    placed.sources = []
    return undefined
  }

  /** Programs off, entry away, if the hook is still this endpoint's; or a fence in its place. */
  #clear(key: HookKey, id: EndpointId): string | undefined {
    const text = formatHookKey(key)
    if (this.#owners.get(text) !== id) return undefined
    if (key.kind === 'interface' && this.fences.takeOver(key.id)) {
      this.#owners.delete(text)
      return undefined
    }
    detach(this.#options.bpf, this.#options.links, key)
    const errno = this.#options.endpoints.delete(encodeHookKey(key))
    if (errno !== 0) return errnoName(errno)
    this.#owners.delete(text)
    return undefined
  }
}
