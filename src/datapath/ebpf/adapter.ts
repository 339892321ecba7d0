// The eBPF datapath: the port on pinned kernel maps and the programs that read them. Everything is
// synchronous: when `commit` returns, the kernel judges by it. State lives in the kernel; here is only what
// is needed to find it again (endpoints and their hooks).

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { endpointId, type EndpointId } from '../../core/ids.ts'
import type { Family, Prefix } from '../../core/ip.ts'
import { errnoName } from '../../native/native.ts'
import {
  COMMITTED,
  type Changes,
  type CommitFailure,
  type CommitResult,
  type Datapath,
  type DatapathCounters,
  type DatapathDump,
  type DatapathEvent,
  type EndpointEntry,
  type Hook,
  type HookState,
  type ListenerEntry,
  type Mode,
  type PeerScan,
} from '../datapath.ts'
import type { AdoptedFlow, Adoption } from '../adoption.ts'
import type { FixtureDifference, FixtureScope } from '../fixture.ts'
import type { InterceptedInterface } from '../interception.ts'
import { pinDirectory } from './maps/bpffs.ts'
import { readCounters } from './maps/counters.ts'
import { readDump, readDumpInSlices } from './maps/dump.ts'
import { removePolicy, removePrefixes, upsertPolicy, upsertPrefixes } from './maps/entries.ts'
import { Fixtures } from './fixtures.ts'
import { listIntercepted, writeIntercepted } from './maps/intercepted.ts'
import {
  decodeMode,
  encodeDnsSource,
  encodeMode,
  encodeNumber,
  MAP_SHAPES,
  readNumber,
} from './maps/layout.ts'
import { writeListeners } from './maps/own-listeners.ts'
import { detachAll } from './maps/pins.ts'
import { ReadAhead } from './maps/read-ahead.ts'
import { openRunning, programOf, type EbpfOptions, type Running } from './running.ts'

/** What the programs return for a packet to be dropped: TC_ACT_SHOT, and 0. */
const TC_DROP = 2
const CGROUP_DROP = 0

export class EbpfDatapath implements Datapath {
  readonly kind = 'ebpf'
  readonly #options: EbpfOptions
  #running: Running | undefined
  #ahead: ReadAhead | undefined
  #listeners: readonly ListenerEntry[] = []
  #onTouched: (() => void) | undefined

  constructor(options: EbpfOptions) {
    this.#options = options
  }

  readAhead(): void {
    const { bpf, pinPath } = this.#options
    this.#ahead ??= ReadAhead.begin(bpf, pinPath)
  }

  start(): DatapathDump {
    this.#running = openRunning(this.#options)
    const prefixes = this.#ahead?.take()
    this.#ahead = undefined
    return readDump(this.#running.maps, prefixes)
  }

  commit(changes: Changes): CommitResult {
    const failures: CommitFailure[] = []
    const { hooks, maps } = this.#on()
    upsertPolicy(maps, changes.policyUpserts, failures)
    upsertPrefixes(maps, changes.prefixUpserts, failures)
    changes.endpointUpserts.forEach((entry, index) => {
      const code = hooks.upsert(entry)
      if (code !== undefined) failures.push({ section: 'endpoint', action: 'upsert', index, code })
    })
    changes.endpointRemovals.forEach((id, index) => {
      const code = hooks.remove(id)
      if (code !== undefined) failures.push({ section: 'endpoint', action: 'remove', index, code })
    })
    removePrefixes(maps, changes.prefixRemovals, failures)
    removePolicy(maps, changes.policyRemovals, failures)
    return failures.length === 0 ? COMMITTED : failures
  }

  /** Commits are applied when they return: there is nothing to tell. */
  onCommitted(): void {}

  setListeners(listeners: readonly ListenerEntry[]): void {
    this.#listeners = listeners
    writeListeners(this.#on().maps.ng_listeners, listeners)
  }

  setIntercepted(interfaces: readonly InterceptedInterface[]): void {
    writeIntercepted(this.#options.bpf, this.#on().maps.ng_intercepted, interfaces)
  }

  intercepted(): readonly InterceptedInterface[] {
    return listIntercepted(this.#on().maps.ng_intercepted)
  }

  setMode(mode: Mode): void {
    const errno = this.#on().maps.ng_mode.set(encodeNumber(0), encodeMode(mode))
    if (errno !== 0) throw new Error(`Cannot set mode ${mode}: ${errnoName(errno)}`)
  }

  readMode(): Mode {
    const zero = encodeNumber(0)
    return decodeMode(this.#on().maps.ng_mode.get(zero) ?? zero)
  }

  refresh(): readonly EndpointId[] {
    const { hooks } = this.#on()
    const changed = hooks.refresh()
    if (hooks.touched.size > 0) this.#onTouched?.()
    return changed
  }

  onLinkNews(onNews: () => void): boolean {
    return this.#on().hooks.watch(onNews)
  }

  fence(patterns: readonly string[]): void {
    this.#on().hooks.fences.set(patterns)
  }

  fenced(): readonly string[] {
    return this.#on().hooks.fences.names
  }

  hookState(endpoint: EndpointId): HookState {
    return this.#on().hooks.stateOf(endpoint)
  }

  hookKey(hook: Hook): string | undefined {
    return this.#on().hooks.keyOf(hook)
  }

  adopt(adoption: Adoption): number {
    return this.#on().adopted.adopt(adoption)
  }

  adopted(): readonly AdoptedFlow[] {
    const { adopted, hooks } = this.#on()
    return adopted.list((id) => hooks.generationOf(id))
  }

  sourceOf(
    protocol: number,
    family: Family,
    octets: Uint8Array,
    port: number,
  ): EndpointId | undefined {
    const key = encodeDnsSource(protocol, family, octets, port)
    const { maps, hooks } = this.#on()
    const value = maps.ng_dns_source.get(key)
    if (value === undefined) return undefined
    const id = endpointId(readNumber(value, 0))
    return hooks.generationOf(id) === 0 ? undefined : id
  }

  scanPeers(): PeerScan {
    return this.#on().peers.scan()
  }

  connectionUse(): { readonly all: number; readonly most: number } {
    return this.#on().peers.use()
  }

  drainEvents(limit: number, visit: (event: DatapathEvent) => void): void {
    this.#on().events.drain(limit, visit)
  }

  counters(): DatapathCounters {
    const { maps, adopted } = this.#on()
    const counters = readCounters(this.#options.bpf, maps)
    const full = (counters['adopted_table_full'] ?? 0) + adopted.refused
    return { ...counters, adopted_table_full: full }
  }

  dump(): DatapathDump {
    return readDump(this.#on().maps)
  }

  dumpInSlices(): Generator<undefined, DatapathDump> {
    return readDumpInSlices(this.#on().maps)
  }

  rewrite(endpoint: EndpointEntry, held: readonly Prefix[]): void {
    this.#on().hooks.rewrite(endpoint, held)
  }

  *fixtures(which: FixtureScope): Iterable<FixtureDifference> {
    yield* new Fixtures(this.#options, this.#on()).differences(which, this.#listeners)
  }

  onTouched(listener: () => void): void {
    this.#onTouched = listener
  }

  missingPins(): readonly string[] {
    const folder = pinDirectory(this.#options.pinPath)
    return Object.keys(MAP_SHAPES).filter((name) => !existsSync(join(folder, name)))
  }

  /** Whether interfaces are closed before their programs are attached. */
  gateState(): HookState {
    return this.#on().gate.state
  }

  /** What the kernel's program makes of an Ethernet frame that an endpoint sends (`from`) or is sent (`to`), by
   *  running it on that frame, with all its effects. Of a cgroup endpoint this process must be a member. */
  judge(endpoint: EndpointId, direction: 'from' | 'to', frame: Uint8Array): 'pass' | 'drop' {
    const { hooks } = this.#on()
    const key = hooks.placeOf(endpoint)
    if (key?.kind === 'cgroup') {
      return this.#runs(`ng_cgroup_${direction}`, frame, 0) === CGROUP_DROP ? 'drop' : 'pass'
    }
    return this.judgeAt(key?.id ?? 0, direction, frame)
  }

  /** The same for whoever sends or is sent the frame on an interface. */
  judgeAt(ifindex: number, direction: 'from' | 'to', frame: Uint8Array): 'pass' | 'drop' {
    return this.#runs(`ng_tc_${direction}`, frame, ifindex) === TC_DROP ? 'drop' : 'pass'
  }

  #runs(name: string, frame: Uint8Array, ifindex: number): number {
    const program = programOf(this.#on().object, name)
    const result = this.#options.bpf.testRun(program, frame, ifindex)
    if (result < 0) throw new Error(`Cannot run program: ${errnoName(result)}`)
    return result
  }

  stop(options: { readonly leaveEnforcing: boolean }): void {
    if (this.#running === undefined) return
    this.#running.hooks.close()
    if (!options.leaveEnforcing) detachAll(this.#options.bpf, this.#options.pinPath)
    this.#running.gate.close()
    this.#options.bpf.unload(this.#running.object.handle)
    this.#running = undefined
  }

  #on(): Running {
    if (this.#running === undefined) throw new Error('Cannot use the eBPF datapath: not started')
    return this.#running
  }
}
