// The one typed face of the addons. `posix` needs nothing but a C compiler at build time; `bpf` needs libbpf.
// Each is loaded when it is first asked for; when it isn't there, UnavailableError says how to get it.
// Numbers that functions return are negative errno values on failure, unless stated otherwise.

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { messageOf, UnavailableError } from '../core/errors.ts'
import type { NetlinkAddon } from './netfilter/nftables.ts'
import type { TcpAddon } from './tcp/tcp.ts'
import type { UdpAddon } from './udp/udp.ts'

export interface Posix {
  /** Index of an interface in this thread's network namespace. */
  ifIndex(name: string): number
  /** ARPHRD_* number of an interface. */
  ifType(name: string): number
  /** Index of the bridge (or the like) that an interface is a port of; 0: of none. */
  ifMaster(index: number): number
  /** `[index, name, index, name, …]` of all interfaces of this thread's network namespace. */
  ifList(): readonly (number | string)[] | number
  /** A socket that hears of interfaces; close it with `closeFd`. */
  linkSocket(): number
  /** `[index, name, index, name, …]` of interfaces with news; a number: news was lost, look at all. */
  linkDrain(fd: number): readonly (number | string)[] | number
  /**
   * Calls back while there is something to read, and keeps no process alive, unless `keeps` is 1; a number: it cannot be
   * watched here.
   */
  linkWatch(fd: number, onNews: () => void, keeps?: number): object | number
  /** Ends a watch, once, before its socket is closed. */
  linkUnwatch(watch: object): number
  /**
   * Routes of `table`, and rules that have this protocol number, match this mark, or come no later than preference `last`,
   * both families, as octets that are the same as long as nobody changes them; how many. `into` is filled as far as it goes.
   */
  routingRead(protocol: number, table: number, mark: number, last: number, into: Uint8Array): number
  /** The id that kernel programs see for a cgroup. */
  cgroupId(path: string): number
  /** A descriptor with an exclusive flock; -EWOULDBLOCK when another process has it. */
  lock(path: string): number
  closeFd(fd: number): number
  mountBpf(path: string): number
  unmount(path: string): number
  /** Two ends that pass descriptors; close each with `closeFd`. */
  socketPair(): readonly [number, number] | number
  /** The descriptors of one message that has come to such an end; -EAGAIN when none has. */
  receiveFds(fd: number): readonly number[] | number
  /** A datagram socket connected to the UNIX socket at `path`; writes to it never wait. */
  datagramsTo(path: string): number
  /** A network namespace of its own for this thread and what it starts. */
  unshareNetwork(): number
  /** One datagram to a path, or to an abstract name (`@name`). */
  localSend(path: string, octets: Uint8Array): number
  /** A socket file (0600) that takes connections of messages; watch it with `linkWatch`. */
  localListen(path: string): number
  localConnect(path: string): number
  /** Process id of who listens for streams at a path; 0 when it cannot be seen from here. */
  localOwner(path: string): number
  /** -EAGAIN when nobody waits. */
  localAccept(fd: number): number
  /** Process id and user of who is at the other end. */
  localPeer(fd: number): readonly [number, number] | number
  /** One message of at least an octet with `count` descriptors; -EAGAIN when there is no room. */
  messageSend(fd: number, octets: Uint8Array, descriptors: Int32Array, count: number): number
  /** Octets of one message, 0 at the end; `descriptors[0]` says how many follow there (MESSAGE_FDS_MAX at most). */
  messageReceive(fd: number, into: Uint8Array, descriptors: Int32Array): number
  /** Another descriptor of the same file or socket. */
  duplicate(fd: number): number
  /** What a given descriptor is: family, SOCK_*, port, and whether it listens, is transparent, is for IPv6 alone. */
  socketFacts(fd: number, address: Uint8Array): readonly number[] | number
}

/** Descriptors of one message. */
export const MESSAGE_FDS_MAX = 253

/** The connection table (conntrack.ts); records have the layout of conntrack-message.h. */
export interface ConntrackAddon {
  /** A netlink socket. */
  ctOpen(): number
  ctClose(fd: number): number
  /** Begins a listing; `ctNext` gives it batch by batch, 0 at the end. */
  ctDump(fd: number, family: number): number
  ctNext(fd: number, into: Uint8Array): number
  ctDelete(fd: number, record: Uint8Array): number
  /** Completes the record that has the reply tuple, protocol and family of `record`. */
  ctFind(fd: number, record: Uint8Array): number
  /** A socket that hears when rules of nftables change; close it with `ctClose`. */
  rulesWatch(): number
  /** 1 when anything in tables of this name changed since the last call. */
  rulesNews(fd: number, table: string): number
  /** The number of the last transaction of nftables; negative: errno. */
  rulesGeneration(): number
}

export interface LoadedObject {
  readonly handle: object
  readonly maps: Readonly<Record<string, number>>
  readonly programs: Readonly<Record<string, number>>
}

export interface Bpf {
  load(file: string, pins: string, sizes: Readonly<Record<string, number>>): LoadedObject | number
  /** Closes all descriptors of an object; what is pinned or attached stays. */
  unload(handle: object): number
  /** What libbpf said since the last `load`. */
  lastLog(): string
  raiseMemlock(): number
  openPin(path: string): number
  close(fd: number): number
  /** Key size, value size and bound of a map. */
  shape(fd: number, into: Uint32Array): number
  /** Writes `count` entries; `errors[i]` is 0 or entry i's errno. Returns how many failed. */
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
  /** Reads on from `cursor` (CURSOR_SIZE octets, zero at first; `cursor[0] === CURSOR_DONE` at the end). */
  slice(
    fd: number,
    cursor: Uint8Array,
    keys: Uint8Array,
    values: Uint8Array,
    limit: number,
    keySize: number,
    valueSize: number,
  ): number
  /** Reads a whole map beside what comes next; nobody writes it, or closes `fd`, until `gathered`. */
  gather(fd: number, keySize: number, valueSize: number): object | number
  /** Keys and values of all entries, once; waits until they are there. */
  gathered(handle: object): readonly [keys: ArrayBuffer, values: ArrayBuffer] | number
  tcAttach(index: number, egress: number, handle: number, priority: number, program: number): number
  tcDetach(index: number, egress: number, handle: number, priority: number): number
  tcQuery(index: number, egress: number, handle: number, priority: number): number
  /** The kernel's number of a program, as `tcQuery` tells it. */
  programId(program: number): number
  cgroupAttach(path: string, egress: number, program: number, pin: string): number
  /** Before routing, for all interfaces of this network namespace; -EBUSY: another program has the priority. */
  netfilterAttach(program: number, family: number, priority: number, pin: string): number
  /** Runs a program on a packet; its return value, unsigned. */
  testRun(program: number, packet: Uint8Array, ifindex: number): number
  ringOpen(fd: number, recordSize: number): object | number
  ringDrain(ring: object, into: Uint8Array): number
  /** CLOCK_MONOTONIC in seconds. */
  now(): number
  /** CLOCK_BOOTTIME in seconds: the same, and the time that the machine slept. */
  booted(): number
  possibleCpus(): number
}

export const CURSOR_SIZE = 68
export const CURSOR_DONE = 3

/** Folder that package.json stands in, from `src/` as from `dist/src/`. */
export function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder)
    folder = dirname(folder)
  return folder
}

/** A file of the native build, e.g. `namegate.bpf.o`. */
export function builtFile(name: string): string {
  return join(packageRoot(), 'build', name)
}

/** Folder of the addons below `build/`; the sanitizer build has its own. */
const ADDONS = process.env['NAMEGATE_ADDONS'] === 'Sanitize' ? 'Sanitize' : 'Release'

/** Whether a native part is there at all. */
export function isBuilt(name: 'posix' | 'bpf' | 'conntrack' | 'nftables' | 'tcp' | 'udp'): boolean {
  return existsSync(builtFile(join(ADDONS, `${name}.node`)))
}

export function loadPosix(): Posix {
  return loadAddon<Posix>('posix', 'apt-get install gcc libc6-dev')
}

export function loadTcp(): TcpAddon {
  return loadAddon<TcpAddon>('tcp', 'apt-get install gcc libc6-dev libuv1-dev')
}

export function loadUdp(): UdpAddon {
  return loadAddon<UdpAddon>('udp', 'apt-get install gcc libc6-dev libuv1-dev')
}

export function loadConntrack(): ConntrackAddon {
  return loadAddon<ConntrackAddon>('conntrack', 'apt-get install gcc libc6-dev')
}

export function loadNetlink(): NetlinkAddon {
  return loadAddon<NetlinkAddon>('nftables', 'apt-get install gcc libc6-dev libuv1-dev')
}

export function loadBpf(): Bpf {
  return loadAddon<Bpf>('bpf', 'apt-get install gcc libc6-dev clang libbpf-dev')
}

function loadAddon<Addon>(name: string, packages: string): Addon {
  const file = builtFile(join(ADDONS, `${name}.node`))
  const remedy = `${packages}, then npm run build`
  if (!existsSync(file)) {
    throw new UnavailableError(`Cannot load native part ${name}: it is not built: ${remedy}`)
  }
  try {
    return createRequire(import.meta.url)(file) as Addon
  } catch (error) {
    const reason = messageOf(error)
    throw new UnavailableError(`Cannot load native part ${name}: ${reason}: ${remedy}`)
  }
}

const ERRNO_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.errno).map(([name, number]) => [number, name]),
)

/** `ENOSPC` for 28 and for -28; the number itself when it has no name here. */
export function errnoName(number: number): string {
  return ERRNO_NAMES.get(Math.abs(number)) ?? `E${Math.abs(number)}`
}
