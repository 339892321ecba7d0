// Hooks carries out the steps of the eBPF datapath at its hooks: it writes entries in ng_endpoints and ng_source, and attaches
// programs. The state machine is in src/datapath/hooks/endpoint-hooks.ts. Only the adapter writes here.
//
// An entry in ng_endpoints always has its sources in ng_source. A hook has its entry before it has a program, and loses the
// program before it loses the entry. So a program always finds the entry.

import type { EndpointId, Generation } from '../../../core/ids.ts'
import type { Prefix } from '../../../core/ip.ts'
import { errnoName, type Bpf, type Posix } from '../../../native/native.ts'
import type { EndpointEntry, Hook, HookState } from '../../entries.ts'
import { EndpointHooks, type HookActs, type PlacedEndpoint } from '../../hooks/endpoint-hooks.ts'
import { HookFinder, type HookKey, type PresentHook } from '../../hooks/find-hook.ts'
import { LinkEvents } from '../../hooks/link-events.ts'
import type { KernelMap } from '../maps/kernel-map.ts'
import { decodeEndpoint, decodeHookKey, encodeHookKey } from '../maps/layout.ts'
import type { Sources } from '../maps/sources.ts'
import { attachCgroup, detach, markAttached, writeEntry } from './attach.ts'
import type { CgroupPrograms } from './cgroup-programs.ts'
import { Fences } from './fences.ts'
import type { Gate } from './gate.ts'
import type { TcDescriptors, TcPrograms } from './tc-programs.ts'

export interface HooksOptions {
  readonly bpf: Bpf
  readonly tc: TcPrograms
  readonly posix: Posix
  readonly programs: TcDescriptors
  readonly cgroup: CgroupPrograms
  /** The pin directory of cgroup links. */
  readonly links: string
  readonly endpoints: KernelMap
  readonly sources: Sources
  readonly gate: Gate
  /** Called when the connections of a generation have no owner any more. */
  readonly forget: (id: EndpointId, generation: Generation) => void
}

export class Hooks implements HookActs {
  readonly #options: HooksOptions
  readonly #finder: HookFinder
  readonly #linkEvents: LinkEvents
  readonly #endpoints: EndpointHooks = new EndpointHooks(this)
  /** Interfaces without an endpoint. */
  readonly fences: Fences
  /** Interfaces with programs that had an event, so that the programs may be gone. The next comparison clears the set. */
  readonly touched = new Set<number>()
  #onTouched: () => void = () => undefined
  #isSettled = false

  constructor(options: HooksOptions) {
    this.#options = options
    this.#finder = new HookFinder(options.posix)
    this.#linkEvents = new LinkEvents(options.posix)
    this.fences = new Fences({
      ...options,
      linkEvents: this.#linkEvents,
      awaitedSide: (name) => this.#endpoints.awaitedSide(name),
      isOwned: (ifindex) => this.#endpoints.ownerOf(ifindex) !== undefined,
    })
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

  placed(): Iterable<PlacedEndpoint> {
    return this.#endpoints.placed()
  }

  /** The place of an endpoint in the kernel. */
  placeOf(id: EndpointId): HookKey | undefined {
    return this.#endpoints.get(id)?.key
  }

  /**
   * Writes and attaches an endpoint. Returns undefined on success, or the name of the errno. After this call, the gate closes an
   * interface of the endpoint's name for as long as that interface has no entry. An interface that is there gets its programs
   * first, because the gate would drop its packets until then.
   */
  upsert(entry: EndpointEntry): string | undefined {
    if (entry.hook.kind === 'cgroup') this.#options.cgroup.prepare()
    const before = this.#endpoints.get(entry.id)?.entry?.hook
    const failure = this.#endpoints.upsert(entry)
    this.#closeName(entry.hook)
    this.#openName(before)
    return failure
  }

  /** Writes an endpoint again, whatever this process knows about it. `held` are its sources in the kernel. */
  rewrite(entry: EndpointEntry, held: readonly Prefix[]): void {
    const placed = this.#endpoints.get(entry.id)
    if (placed === undefined) return
    placed.sources = held
    this.upsert(entry)
  }

  /** Removes an endpoint: first its program, then its entry, then its sources. */
  remove(id: EndpointId): string | undefined {
    const hook = this.#endpoints.get(id)?.entry?.hook
    this.#openName(hook)
    const failure = this.#endpoints.remove(id)
    if (failure !== undefined) this.#closeName(hook)
    else if (hook?.kind === 'interface') this.fences.lookAt(hook.name)
    return failure
  }

  refresh(): readonly EndpointId[] {
    if (!this.#isSettled) this.fences.settle()
    this.#isSettled = true
    const events = this.#linkEvents.take()
    const changed = this.#endpoints.refresh(events)
    this.fences.follow(events)
    for (const { ifindex } of events === 'all' ? [] : events) {
      const isOwned = this.#endpoints.ownerOf(ifindex) !== undefined
      if (isOwned || this.fences.has(ifindex)) this.touched.add(ifindex)
    }
    if (this.touched.size > 0) this.#onTouched()
    return changed
  }

  onTouched(listener: () => void): void {
    this.#onTouched = listener
  }

  /** Returns the first wanted interface that has the programs of another running daemon, and that daemon's pin path. */
  takenInterface(
    isWanted: (name: string) => boolean,
  ): { readonly name: string; readonly pinPath: string } | undefined {
    for (const { ifindex, name } of this.#linkEvents.list()) {
      const pinPath = isWanted(name) ? this.#options.tc.runningOwner(ifindex) : undefined
      if (pinPath !== undefined) return { name, pinPath }
    }
    return undefined
  }

  watch(onNews: () => void): boolean {
    return this.#linkEvents.watch(onNews)
  }

  stop(): void {
    this.#linkEvents.close()
  }

  find(hook: Hook): ReturnType<HookFinder['find']> {
    return this.#finder.find(hook)
  }

  /** Writes new sources before the endpoint itself. */
  write(placed: PlacedEndpoint, entry: EndpointEntry, found: PresentHook): string | undefined {
    const { sources, endpoints } = this.#options
    const errno = sources.add(entry.id, entry.sources, placed.sources)
    if (errno !== 0) return errnoName(errno)
    const scoped = entry.scoped === true
    return writeEntry(endpoints, found.key, {
      ...entry,
      scoped,
      fenced: false,
      layer3: found.layer3,
    })
  }

  /** Removes the earlier sources, then attaches the programs and sets their mark. */
  attach(placed: PlacedEndpoint, entry: EndpointEntry, found: PresentHook): string | undefined {
    if (found.key.kind === 'interface') this.fences.giveUp(found.key.id)
    const stale = placed.sources
    placed.sources = entry.sources
    this.#options.sources.remove(entry.id, stale, entry.sources)
    return this.#attachPrograms(entry, found)
  }

  /** Removes the programs and the entry, or puts a fence in place of the entry. */
  clear(key: HookKey): string | undefined {
    if (key.kind === 'interface' && this.fences.takeOver(key.id)) return undefined
    detach(this.#options.tc, this.#options.links, key)
    const errno = this.#options.endpoints.delete(encodeHookKey(key))
    return errno === 0 ? undefined : errnoName(errno)
  }

  strip(placed: PlacedEndpoint): void {
    const { tc, links, sources } = this.#options
    const { closed } = placed
    if (closed !== undefined && !this.#endpoints.isOwned(closed)) detach(tc, links, closed)
    sources.remove(placed.id, placed.sources, [])
    placed.sources = []
  }

  /** Fences an interface. On a cgroup it attaches the programs without an entry, so they let nothing pass. */
  close(placed: PlacedEndpoint, entry: EndpointEntry, found: PresentHook): string | undefined {
    if (found.key.kind === 'interface') {
      this.fences.takeOver(found.key.id)
      return undefined
    }
    placed.closed = found.key
    return this.#attachPrograms(entry, found)
  }

  forget(id: EndpointId, generation: Generation): void {
    this.#options.forget(id, generation)
  }

  #attachPrograms(entry: EndpointEntry, found: PresentHook): string | undefined {
    const { bpf, tc, programs, cgroup, links, endpoints } = this.#options
    const failure =
      entry.hook.kind === 'interface'
        ? tc.attach(programs, found.key.id, entry.hook.side)
        : attachCgroup(bpf, cgroup, links, found.key, found.path)
    return failure ?? markAttached(endpoints, found.key)
  }

  #closeName(hook: Hook | undefined): void {
    if (hook?.kind === 'interface' && hook.side === 'ingress') this.#options.gate.add(hook.name)
  }

  #openName(hook: Hook | undefined): void {
    if (hook?.kind === 'interface' && hook.side === 'ingress') this.#options.gate.remove(hook.name)
  }

  /** Reads what an earlier process left in the kernel. Removes sources without an endpoint. */
  #restore(): void {
    const { endpoints, sources } = this.#options
    const held = sources.read()
    endpoints.forEach((keys, keyAt, values, valueAt) => {
      const { id, generation, fenced } = decodeEndpoint(values, valueAt)
      if (fenced) return
      const key = decodeHookKey(keys, keyAt)
      this.#endpoints.restore(id, generation, key, held.get(id) ?? [])
      held.delete(id)
    })
    for (const [id, orphans] of held) sources.remove(id, orphans, [])
  }
}
