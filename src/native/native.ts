// This file declares and loads the addons. They need a C compiler at build time, and `bpf` also needs libbpf. Each addon
// is loaded at its first use. If an addon is not built, UnavailableError says how to build it. Functions that return numbers
// return a negative errno on failure, unless stated otherwise.

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { messageOf, UnavailableError } from '../core/errors.ts'
import { isPrebuilt, nativeFile, whyMissing } from './native-files.ts'
import type { NetlinkAddon } from './netfilter/nftables.ts'
import type { TcpAddon } from './tcp/tcp.ts'
import type { UdpAddon } from './udp/udp.ts'

export interface Posix {
  /** Returns the index of an interface in this thread's network namespace. */
  ifIndex(name: string): number
  /** Returns the ARPHRD_* number of an interface. */
  ifType(name: string): number
  /** Returns the index of the interface's master, such as a bridge; 0 without a master. */
  ifMaster(index: number): number
  /** Returns `[index, name, index, name, …]` of all interfaces of this thread's network namespace. */
  ifList(): readonly (number | string)[] | number
  /** Returns `[address, prefix length, broadcast address or '', …]` of all interfaces, also of those that are down. */
  ifAddresses(): readonly (number | string)[] | number
  /** Returns a socket for `addressesChanged`. Close it with `closeFd`. */
  addressSocket(): number
  /** Returns 1 if addresses of interfaces changed since the last call, or if this is not known, else 0. */
  addressesChanged(fd: number): number
  /** Returns a socket that receives events of interfaces. Close it with `closeFd`. */
  linkSocket(): number
  /**
   * Returns `[index, name, index, name, …]` of interfaces with events. A number means that events were lost: look at all
   * interfaces.
   */
  linkDrain(fd: number): readonly (number | string)[] | number
  /**
   * Calls `onNews` while `fd` is readable. The watch keeps the process alive only if `keeps` is 1. A number means that this system
   * cannot watch `fd`.
   */
  linkWatch(fd: number, onNews: () => void, keeps?: number): object | number
  /** Ends a watch. Call it once, before the watched socket is closed. */
  linkUnwatch(watch: object): number
  /**
   * Writes to `into`, as far as there is room, octets that stay the same until a process changes the configuration. They contain,
   * for both families, the routes of `table` and the rules that have this protocol number, match this mark, or come no later than
   * preference `last`. Returns how many octets it wrote.
   */
  routingRead(protocol: number, table: number, mark: number, last: number, into: Uint8Array): number
  /**
   * Returns the name of the veth or netkit interface behind which an address of a local workload is; empty if there is none.
   * `octets`: 4 or 16 octets.
   */
  workloadInterface(octets: Uint8Array): string | number
  /** Returns the id by which kernel programs know the cgroup. */
  cgroupId(path: string): number
  /** Returns a descriptor with an exclusive flock; -EWOULDBLOCK if another process has the lock. */
  lock(path: string): number
  closeFd(fd: number): number
  /** Returns 1 if the kernel's clock is synchronised, else 0. */
  clockSynchronized(): number
  /** Returns the addresses of all whole areas of 2 MiB in the arrays. */
  hugeAreas(arrays: readonly Uint8Array[]): readonly number[]
  /**
   * Moves an area of `hugeAreas` into one huge page, in less than a millisecond. Returns 1 on success, 0 if less than half of the area
   * was touched, or a negative errno. Kernel 6.1 or newer.
   */
  makeHuge(address: number): number
  mountBpf(path: string): number
  unmount(path: string): number
  /** Returns two ends that transfer descriptors. Close each with `closeFd`. */
  socketPair(): readonly [number, number] | number
  /** Returns the descriptors of one message from such an end; -EAGAIN without a message. */
  receiveFds(fd: number): readonly number[] | number
  /** Returns a datagram socket that is connected to the UNIX socket at `path`. A write to it never waits. */
  datagramsTo(path: string): number
  /** Gives this thread, and all that it starts, a new network namespace. */
  unshareNetwork(): number
  /** Sends one datagram to a path or to an abstract name (`@name`). */
  localSend(path: string, octets: Uint8Array): number
  /** Makes a socket file (0600) that accepts connections for messages. Watch it with `linkWatch`. */
  localListen(path: string): number
  localConnect(path: string): number
  /** Returns the process id of the listener for streams at a path; 0 if its pid namespace is another one. */
  localOwner(path: string): number
  /** Returns a waiting connection; -EAGAIN if none waits. */
  localAccept(fd: number): number
  /** Returns the process id and the user id of the process at the other end. */
  localPeer(fd: number): readonly [number, number] | number
  /** Sends one message of at least one octet with `count` descriptors; -EAGAIN if the kernel has no room. */
  messageSend(fd: number, octets: Uint8Array, descriptors: Int32Array, count: number): number
  /**
   * Returns the octets of one message, or 0 at the end. `descriptors[0]` is the number of received descriptors (at most
   * MESSAGE_FDS_MAX), which follow it.
   */
  messageReceive(fd: number, into: Uint8Array, descriptors: Int32Array): number
  /** Returns another descriptor of the same file or socket. */
  duplicate(fd: number): number
  /**
   * Returns facts about a descriptor from another process: family, SOCK_*, port, then 0 or 1 for: it listens, is transparent, is
   * IPv6 only.
   */
  socketFacts(fd: number, address: Uint8Array): readonly number[] | number
}

/** Most descriptors of one message. */
export const MESSAGE_FDS_MAX = 253

/** The connection table (conntrack.ts). conntrack-message.h has the layout of a record. */
export interface ConntrackAddon {
  /** Opens a netlink socket. */
  ctOpen(): number
  ctClose(fd: number): number
  /** Requests a listing of both families. `ctNext` reads it in parts and returns 0 at the end. */
  ctDump(fd: number): number
  ctNext(fd: number, into: Uint8Array): number
  ctDelete(fd: number, record: Uint8Array): number
  /** Finds the entry with the reply tuple, protocol and family of `record`, and completes the record. */
  ctFind(fd: number, record: Uint8Array): number
  /** Opens a socket that receives an event when rules of nftables change. Close it with `ctClose`. */
  rulesWatch(): number
  /** Returns 1 if a table of this name changed since the last call. */
  rulesChanged(fd: number, table: string): number
  /** Returns the number of the last nftables transaction, or a negative errno. */
  rulesGeneration(): number
}

export interface LoadedObject {
  readonly handle: object
  readonly maps: Readonly<Record<string, number>>
  readonly programs: Readonly<Record<string, number>>
}

export interface Bpf {
  /**
   * Loads the programs of an object whose section begins with a text. `maps` has sizes of maps by name, which are pinned in the
   * folder `pins`. If `maps` is the handle of a loaded object, the programs use its maps.
   */
  load(
    file: Uint8Array,
    section: string,
    pins: string,
    maps: Readonly<Record<string, number>> | LoadedObject['handle'],
  ): LoadedObject | number
  /** Closes all descriptors of an object. Pins and attached programs stay. */
  unload(handle: object): number
  /** Returns what libbpf wrote since the last `load`. */
  lastLog(): string
  raiseMemlock(): number
  openPin(path: string): number
  /** Pins a map or a program; -EEXIST if the path is taken. */
  pin(fd: number, path: string): number
  close(fd: number): number
  /** Writes the key size, the value size and the bound of a map to `into`. */
  shape(fd: number, into: Uint32Array): number
  /** Writes `count` entries. `errors[i]` is 0 or the errno of entry i. Returns how many entries failed. */
  update(
    fd: number,
    keys: Uint8Array,
    values: Uint8Array,
    count: number,
    keySize: number,
    valueSize: number,
    errors: Int32Array,
  ): number
  remove(fd: number, keys: Uint8Array, count: number, keySize: number, errors: Int32Array): number
  lookup(fd: number, key: Uint8Array, value: Uint8Array): number
  /**
   * Reads the next entries after `cursor`, which has CURSOR_SIZE octets and is all zero at first. At the end `cursor[0]` is
   * CURSOR_DONE.
   */
  slice(
    fd: number,
    cursor: Uint8Array,
    keys: Uint8Array,
    values: Uint8Array,
    limit: number,
    keySize: number,
    valueSize: number,
  ): number
  /** Reads a whole map on a thread. Until `gathered`, no process may write the map, and `fd` must stay open. */
  gather(fd: number, keySize: number, valueSize: number): object | number
  /** Waits for the thread, and returns the keys and values of all entries. Call it exactly once. */
  gathered(handle: object): readonly [keys: ArrayBuffer, values: ArrayBuffer] | number
  tcAttach(index: number, egress: number, handle: number, priority: number, program: number): number
  tcDetach(index: number, egress: number, handle: number, priority: number): number
  tcQuery(index: number, egress: number, handle: number, priority: number): number
  /** Returns the kernel's id of a program, as `tcQuery` returns it. */
  programId(program: number): number
  cgroupAttach(path: string, egress: number, program: number, pin: string): number
  /** Attaches before routing, for all interfaces of this network namespace; -EBUSY if another program has this priority. */
  netfilterAttach(program: number, family: number, priority: number, pin: string): number
  /** Runs a program on a packet. Returns the program's return value as unsigned. */
  testRun(program: number, packet: Uint8Array, ifindex: number): number
  ringOpen(fd: number, recordSize: number): object | number
  ringDrain(ring: object, into: Uint8Array): number
  /** CLOCK_MONOTONIC in seconds. */
  now(): number
  /** CLOCK_BOOTTIME in seconds: CLOCK_MONOTONIC plus the time that the machine slept. */
  booted(): number
  possibleCpus(): number
}

export const CURSOR_SIZE = 68
export const CURSOR_DONE = 3

/** True if this addon is built. */
export function isBuilt(name: 'posix' | 'bpf' | 'conntrack' | 'nftables' | 'tcp' | 'udp'): boolean {
  return existsSync(nativeFile(`${name}.node`))
}

/** Installs what a build of every addon except `bpf` needs. */
export const COMPILER = 'apt-get install gcc libc6-dev libuv1-dev'

export function loadPosix(): Posix {
  return loadAddon<Posix>('posix', COMPILER)
}

export function loadTcp(): TcpAddon {
  return loadAddon<TcpAddon>('tcp', COMPILER)
}

export function loadUdp(): UdpAddon {
  return loadAddon<UdpAddon>('udp', COMPILER)
}

export function loadConntrack(): ConntrackAddon {
  return loadAddon<ConntrackAddon>('conntrack', COMPILER)
}

export function loadNetlink(): NetlinkAddon {
  return loadAddon<NetlinkAddon>('nftables', COMPILER)
}

export function loadBpf(): Bpf {
  return loadAddon<Bpf>('bpf', 'apt-get install gcc libc6-dev clang libbpf-dev')
}

function loadAddon<Addon>(name: string, packages: string): Addon {
  const file = nativeFile(`${name}.node`)
  if (!existsSync(file)) {
    throw new UnavailableError(`Cannot load native part ${name}: ${whyMissing(packages)}`)
  }
  try {
    return createRequire(import.meta.url)(file) as Addon
  } catch (error) {
    const remedy = isPrebuilt() ? PREBUILT_NEEDS : `${packages}, then npm run build`
    throw new UnavailableError(`Cannot load native part ${name}: ${messageOf(error)}: ${remedy}`)
  }
}

/** What a prebuilt addon takes from the machine. */
const PREBUILT_NEEDS =
  'it needs glibc 2.34 or musl 1.2, and for eBPF libbpf 1.0 or newer (Debian: apt-get install libbpf1, Alpine: apk add libbpf)'

const ERRNO_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.errno).map(([name, number]) => [number, name]),
)

/** Returns `ENOSPC` for 28 and for -28, or `E` and the number if the table has no name for it. */
export function errnoName(number: number): string {
  return ERRNO_NAMES.get(Math.abs(number)) ?? `E${Math.abs(number)}`
}
