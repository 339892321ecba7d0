// Running has the parts of the eBPF datapath that exist between `start` and `stop`: the loaded programs with their maps, and the
// writers of the maps.

import type { Bpf, LoadedObject, Posix } from '../../native/native.ts'
import { Adopted } from './maps/adopted.ts'
import { CgroupPrograms } from './hooks/cgroup-programs.ts'
import { linkDirectory } from './maps/bpffs.ts'
import { Events } from './maps/reports.ts'
import { Gate } from './hooks/gate.ts'
import { Hooks } from './hooks/hooks.ts'
import { encodeNumber } from './maps/layout.ts'
import { openMaps, type KernelMaps } from './maps/kernel-map.ts'
import { Peers } from './maps/peers.ts'
import { Prefixes } from './maps/prefixes.ts'
import { loadProgram, programOf, readKernelObject, type MapSizes } from './program.ts'
import { Sources } from './maps/sources.ts'
import { TcPrograms, type TcDescriptors } from './hooks/tc-programs.ts'

export interface EbpfOptions {
  readonly bpf: Bpf
  readonly posix: Posix
  readonly pinPath: string
  /** Returns true if a process holds the lock of another pin path. */
  readonly isInUse: (pinPath: string) => boolean
  /** Map sizes that differ from the object's own. Pinned maps keep their size. */
  readonly sizes?: MapSizes
  /** docs/spec/semantics 6, `connections-per-endpoint`. */
  readonly connectionsPerEndpoint: number
  /** `limits.connections`. Pinned maps keep their size, so this bound applies only if it is smaller. */
  readonly connections: number
  /** `limits.endpoints`. */
  readonly endpointsMax: number
  /** `dns.tcp-idle` in milliseconds. */
  readonly tcpIdleMs: number
  /** `dns.udp-idle` in milliseconds. */
  readonly udpIdleMs: number
}

export interface Running {
  readonly object: LoadedObject
  readonly gate: Gate
  readonly maps: KernelMaps
  readonly hooks: Hooks
  readonly peers: Peers
  readonly prefixes: Prefixes
  readonly adopted: Adopted
  readonly events: Events
  readonly programs: TcDescriptors
  readonly cgroup: CgroupPrograms
  readonly tc: TcPrograms
  /** The pin directory of cgroup links. */
  readonly links: string
}

/** Throws UnavailableError with the remedy. */
export function openRunning(options: EbpfOptions): Running {
  const { bpf, posix, pinPath, connections, tcpIdleMs, udpIdleMs } = options
  const tables = { ng_conn: connections, ng_conn_new: connections, ng_flow_slot: connections }
  const file = readKernelObject()
  const object = loadProgram(bpf, posix, pinPath, { ...tables, ...options.sizes }, file)
  const maps = openMaps(bpf, object.maps)
  maps.ng_config.set(encodeNumber(0), encodeShares(options, maps))
  const peers = new Peers({
    bpf,
    connections: maps.ng_conn,
    others: maps.ng_conn_new,
    slots: maps.ng_flow_slot,
    turns: maps.ng_flow_turn,
    counts: maps.ng_conn_count,
    generationOf: (id) => hooks.generationOf(id),
    tcpIdleMs,
    udpIdleMs,
  })
  const adopted = new Adopted({ bpf, adopting: maps.ng_adopting, adopted: maps.ng_adopted })
  const gate = new Gate({ bpf, pinPath, names: maps.ng_gate })
  const programs = {
    tcFrom: programOf(object, 'ng_tc_from'),
    tcTo: programOf(object, 'ng_tc_to'),
  }
  const cgroup = new CgroupPrograms({ bpf, pinPath, file, object })
  const links = linkDirectory(pinPath)
  const tc = new TcPrograms(bpf, pinPath, options.isInUse)
  tc.pin(programs)
  const hooks = new Hooks({
    bpf,
    posix,
    tc,
    programs,
    cgroup,
    links,
    endpoints: maps.ng_endpoints,
    sources: new Sources(maps.ng_source),
    gate,
    forget: (id, generation) => {
      peers.forget(id, generation)
      adopted.forget(id, generation)
    },
  })
  const events = new Events(bpf, object.maps['ng_events'] ?? -1)
  const prefixes = new Prefixes(maps)
  return {
    object,
    gate,
    maps,
    hooks,
    peers,
    prefixes,
    adopted,
    events,
    programs,
    cgroup,
    tc,
    links,
  }
}

/** Encodes the value of ng_config: an endpoint's share of the tables of connections (share.h). */
export function encodeShares(
  { connectionsPerEndpoint, connections, endpointsMax }: EbpfOptions,
  { ng_conn, ng_conn_new, ng_flow_slot }: KernelMaps,
): Uint8Array {
  const all = Math.min(connections, ng_conn.capacity, ng_conn_new.capacity, ng_flow_slot.capacity)
  const pool = Math.floor(all / 2)
  const reserved = Math.max(1, Math.floor((all - pool) / endpointsMax))
  return new Uint8Array(Uint32Array.of(connectionsPerEndpoint, reserved, pool, 0).buffer)
}
