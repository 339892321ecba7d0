// EbpfDatapath implements the datapath with pinned kernel maps and the programs that read them. When `commit` returns, the kernel
// judges by that commit. The kernel holds the state. This process keeps only what it needs to find the state again (endpoints and
// their hooks).

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { endpointId, type EndpointId } from '../../core/ids.ts'
import { errnoName } from '../../native/native.ts'
import type {
  ExceptionControl,
  FenceControl,
  FlowAdoption,
  HookControl,
  ModeSwitch,
  PacketReports,
  PeerTable,
} from '../abilities.ts'
import {
  COMMITTED,
  type Changes,
  type CommitFailure,
  type CommitResult,
  type DatapathDump,
  type HookState,
  type ListenerEntry,
} from '../entries.ts'
import { type Datapath } from '../datapath.ts'
import type { RepairByDaemon } from '../repair.ts'
import { pinDirectory } from './maps/bpffs.ts'
import { readCounters } from './maps/reports.ts'
import { ReadAhead, readDump, readDumpInSlices } from './maps/dump.ts'
import { removePolicy, upsertPolicy } from './maps/entries.ts'
import { Fixtures } from './fixtures.ts'
import type { Hooks } from './hooks/hooks.ts'
import { listIntercepted, writeIntercepted, writeListeners } from './maps/exceptions.ts'
import {
  decodeMode,
  encodeDnsSource,
  encodeMode,
  encodeNumber,
  MAP_SHAPES,
  readNumber,
} from './maps/layout.ts'
import { detachAll } from './break-glass.ts'
import { programOf } from './program.ts'
import { openRunning, type EbpfOptions, type Running } from './running.ts'

/** What the programs return for a packet to be dropped: TC_ACT_SHOT on an interface, 0 on a cgroup. */
const TC_DROP = 2
const CGROUP_DROP = 0

export class EbpfDatapath implements Datapath {
  readonly kind = 'ebpf'
  readonly #options: EbpfOptions
  #running: Running | undefined
  #ahead: ReadAhead | undefined
  #listeners: readonly ListenerEntry[] = []

  readonly mode: ModeSwitch = {
    set: (mode) => {
      const errno = this.#on().maps.ng_mode.set(encodeNumber(0), encodeMode(mode))
      if (errno !== 0) throw new Error(`Cannot set mode ${mode}: ${errnoName(errno)}`)
    },
    read: () => {
      const zero = encodeNumber(0)
      return decodeMode(this.#on().maps.ng_mode.get(zero) ?? zero)
    },
  }
  readonly exceptions: ExceptionControl = {
    setListeners: (listeners) => {
      this.#listeners = listeners
      writeListeners(this.#on().maps.ng_listeners, listeners)
    },
    // The hooks never see namegate's own traffic.
    setOwn: () => undefined,
    setIntercepted: (interfaces) =>
      writeIntercepted(this.#options.bpf, this.#on().maps.ng_intercepted, interfaces),
    intercepted: () => listIntercepted(this.#on().maps.ng_intercepted),
  }
  readonly adoption: FlowAdoption = {
    adopt: (adoption) => this.#on().adopted.adopt(adoption),
    list: () => {
      const { adopted, hooks } = this.#on()
      return adopted.list((id) => hooks.generationOf(id))
    },
  }
  readonly peers = {
    scan: () => this.#on().peers.scan(),
    use: () => this.#on().peers.use(),
    sourceOf: (protocol, family, octets, port) => {
      const { maps, hooks } = this.#on()
      const value = maps.ng_dns_source.get(encodeDnsSource(protocol, family, octets, port))
      if (value === undefined) return undefined
      const id = endpointId(readNumber(value, 0))
      return hooks.generationOf(id) === 0 ? undefined : id
    },
  } satisfies PeerTable
  readonly reports: PacketReports = {
    drain: (limit, visit) => this.#on().events.drain(limit, visit),
    counters: () => {
      const { maps, adopted } = this.#on()
      const counters = readCounters(this.#options.bpf, maps)
      const full = (counters['adopted_table_full'] ?? 0) + adopted.refused
      return { ...counters, adopted_table_full: full }
    },
  }
  readonly repair: RepairByDaemon = {
    kind: 'by-daemon',
    rewrite: (endpoint, held) => this.#on().hooks.rewrite(endpoint, held),
    fixtures: (which) =>
      new Fixtures(this.#options, this.#on()).differences(which, this.#listeners),
    onTouched: (listener) => this.#on().hooks.onTouched(listener),
    missingPins: () => {
      const folder = pinDirectory(this.#options.pinPath)
      return Object.keys(MAP_SHAPES).filter((name) => !existsSync(join(folder, name)))
    },
  }

  constructor(options: EbpfOptions) {
    this.#options = options
  }

  get hooks(): HookControl {
    return this.#on().hooks
  }

  get fences(): FenceControl {
    return this.#on().hooks.fences
  }

  readAhead(): void {
    const { bpf, pinPath } = this.#options
    this.#ahead ??= ReadAhead.begin(bpf, pinPath)
  }

  start(): DatapathDump {
    this.#running = openRunning(this.#options)
    const ahead = this.#ahead?.take()
    this.#ahead = undefined
    return readDump(this.#running.maps, this.#running.prefixes, ahead)
  }

  commit(changes: Changes): CommitResult {
    const failures: CommitFailure[] = []
    const { hooks, maps, prefixes } = this.#on()
    upsertPolicy(maps, changes.policyUpserts, failures)
    prefixes.upsert(changes.prefixUpserts, failures)
    changes.endpointUpserts.forEach((entry, index) => {
      const code = hooks.upsert(entry)
      if (code !== undefined) failures.push({ section: 'endpoint', action: 'upsert', index, code })
    })
    changes.endpointRemovals.forEach((id, index) => {
      const code = hooks.remove(id)
      if (code !== undefined) failures.push({ section: 'endpoint', action: 'remove', index, code })
    })
    prefixes.remove(changes.prefixRemovals, failures)
    removePolicy(maps, changes.policyRemovals, failures)
    return failures.length === 0 ? COMMITTED : failures
  }

  /** Never calls back, because a commit is in force when `commit` returns. */
  onCommitted(): void {}

  dump(): DatapathDump {
    const { maps, prefixes } = this.#on()
    return readDump(maps, prefixes)
  }

  dumpInSlices(): Generator<undefined, DatapathDump> {
    const { maps, prefixes } = this.#on()
    return readDumpInSlices(maps, prefixes)
  }

  /** Returns the first wanted interface that has the programs of another running daemon, and that daemon's pin path. */
  takenInterface(isWanted: (name: string) => boolean): ReturnType<Hooks['takenInterface']> {
    return this.#on().hooks.takenInterface(isWanted)
  }

  /** Returns whether the gate closes interfaces before their programs are attached. */
  gateState(): HookState {
    return this.#on().gate.state
  }

  /**
   * Runs the kernel's program, with all its effects, on an Ethernet frame that an endpoint sends (`from`) or receives (`to`). For
   * a cgroup endpoint, this process must be a member of the cgroup.
   */
  judge(endpoint: EndpointId, direction: 'from' | 'to', frame: Uint8Array): 'pass' | 'drop' {
    const { hooks, cgroup } = this.#on()
    const key = hooks.placeOf(endpoint)
    if (key?.kind === 'cgroup') {
      const programs = cgroup.descriptors()
      if (typeof programs === 'string') throw new Error(`Cannot run program: ${programs}`)
      return this.#runs(programs[direction], frame, 0) === CGROUP_DROP ? 'drop' : 'pass'
    }
    return this.judgeAt(key?.id ?? 0, direction, frame)
  }

  /** Does the same as `judge` for an interface, with or without an endpoint. */
  judgeAt(ifindex: number, direction: 'from' | 'to', frame: Uint8Array): 'pass' | 'drop' {
    const program = programOf(this.#on().object, `ng_tc_${direction}`)
    return this.#runs(program, frame, ifindex) === TC_DROP ? 'drop' : 'pass'
  }

  #runs(program: number, frame: Uint8Array, ifindex: number): number {
    const result = this.#options.bpf.testRun(program, frame, ifindex)
    if (result < 0) throw new Error(`Cannot run program: ${errnoName(result)}`)
    return result
  }

  stop(options: { readonly leaveEnforcing: boolean }): void {
    if (this.#running === undefined) return
    this.#running.hooks.stop()
    if (!options.leaveEnforcing) detachAll(this.#options.bpf, this.#options.pinPath)
    this.#running.gate.close()
    this.#running.cgroup.close()
    this.#options.bpf.unload(this.#running.object.handle)
    this.#running = undefined
  }

  #on(): Running {
    if (this.#running === undefined) throw new Error('Cannot use the eBPF datapath: not started')
    return this.#running
  }
}
