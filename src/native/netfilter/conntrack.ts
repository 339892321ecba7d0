// This file lists the kernel's connection table, and makes the kernel forget connections. It runs off the packet path. One
// netlink socket lists and finds entries, and a second socket deletes entries during a listing. If the kernel has no connection
// tracking or refuses, `openConntrack` reports the reason. Errors are negative errno values.

import type { Family } from '../../core/ip.ts'
import { loadConntrack, type ConntrackAddon } from '../native.ts'

/** Octets of one entry as the addon writes it. conntrack-message.h has the layout. */
export const FLOW_SIZE = 88
const BATCH = 512
const ENOENT = -2
const PASSES_MAX = 8

const AT_PROTOCOL = 0
const AT_FAMILY = 1
const AT_STATE = 2
const AT_STATUS = 4
const AT_ORIGINAL = 16
const AT_PORTS = 48
const AT_REPLY = 56
const ADDRESS = 16

/** One direction of a connection. Addresses are 16 octets (core/ip.ts). */
export interface FlowTuple {
  readonly source: Uint8Array
  readonly target: Uint8Array
  readonly sourcePort: number
  readonly targetPort: number
}

/** The bit of `Flow.status` of a connection whose destination was rewritten (IPS_DST_NAT). */
export const DESTINATION_REWRITTEN = 32

export interface Flow {
  readonly family: Family
  readonly protocol: number
  /** TCP_CONNTRACK_*: 1 SYN sent, 2 SYN received, 3 established, 4-7 closing. 0 for other protocols. */
  readonly tcpState: number
  /** IPS_* bits: 2 a reply was seen, 4 assured, 16 source rewritten, 32 destination rewritten. */
  readonly status: number
  readonly original: FlowTuple
  readonly reply: FlowTuple
}

export type OpenedConntrack =
  | { readonly kind: 'open'; readonly table: Conntrack }
  /** `errno` is negative: EPERM without CAP_NET_ADMIN, another number if the kernel has no ctnetlink. */
  | { readonly kind: 'absent'; readonly errno: number }

/** Opens the connection table of this thread's network namespace. */
export function openConntrack(addon: ConntrackAddon = loadConntrack()): OpenedConntrack {
  const list = addon.ctOpen()
  if (list < 0) return { kind: 'absent', errno: list }
  const remove = addon.ctOpen()
  const table = new Conntrack(addon, list, remove)
  const errno = remove < 0 ? remove : table.probe()
  if (errno === 0) return { kind: 'open', table }
  table.close()
  return { kind: 'absent', errno }
}

export class Conntrack {
  readonly #addon: ConntrackAddon
  readonly #list: number
  readonly #remove: number
  readonly #records = new Uint8Array(BATCH * FLOW_SIZE)
  readonly #one = new Uint8Array(FLOW_SIZE)

  constructor(addon: ConntrackAddon, list: number, remove: number) {
    this.#addon = addon
    this.#list = list
    this.#remove = remove
  }

  close(): void {
    this.#addon.ctClose(this.#list)
    if (this.#remove >= 0) this.#addon.ctClose(this.#remove)
  }

  /** Returns 0 if the kernel answers for both families, else a negative errno. */
  probe(): number {
    const sought = this.#one.fill(0)
    for (const family of [4, 6]) {
      sought[AT_PROTOCOL] = 17
      sought[AT_FAMILY] = family
      const errno = this.#addon.ctFind(this.#list, sought)
      if (errno !== 0 && errno !== ENOENT) return errno
    }
    return 0
  }

  /**
   * Forgets every connection that uses the port on any side with one of these protocols, except those that `isKept` names. Returns
   * how many it forgot, or a negative errno.
   */
  flushPort(
    port: number,
    protocols: readonly number[],
    families: readonly Family[],
    isKept: (flow: Flow) => boolean = () => false,
  ): number {
    let gone = 0
    // A listing can miss entries if the table changes during it. So passes repeat until one finds no entry.
    for (let pass = 0; pass < PASSES_MAX; pass++) {
      const found = this.#flushOnce(port, protocols, families, isKept)
      if (found <= 0) return found < 0 ? found : gone
      gone += found
    }
    return gone
  }

  #flushOnce(
    port: number,
    protocols: readonly number[],
    families: readonly Family[],
    isKept: (flow: Flow) => boolean,
  ): number {
    let [gone, failed] = [0, 0]
    const errno = this.#each((records, count) => {
      const ports = new Uint16Array(records.buffer)
      for (let i = 0; i < count; i++) {
        const at = i * FLOW_SIZE
        if (!protocols.includes(records[at]!) || !hasPort(ports, at, port)) continue
        const flow = decodeFlow(records, at)
        if (!families.includes(flow.family) || isKept(flow)) continue
        const result = this.#addon.ctDelete(this.#remove, records.subarray(at, at + FLOW_SIZE))
        if (result === 0) gone++
        else if (result !== ENOENT) failed = result
      }
    })
    if (errno !== 0) return errno
    return failed === 0 ? gone : failed
  }

  /** Visits every connection, in no order. Returns 0, or a negative errno. */
  dump(visit: (flow: Flow) => void): number {
    return this.#each((records, count) => {
      for (let i = 0; i < count; i++) visit(decodeFlow(records, i * FLOW_SIZE))
    })
  }

  /** Forgets every connection for which `isGone` returns true. The next pass retries failed deletions. */
  forgetFlows(isGone: (flow: Flow) => boolean): void {
    this.#each((records, count) => {
      for (let i = 0; i < count; i++) {
        const at = i * FLOW_SIZE
        if (!isGone(decodeFlow(records, at))) continue
        this.#addon.ctDelete(this.#remove, records.subarray(at, at + FLOW_SIZE))
      }
    })
  }

  /** One listing has both families, because the kernel goes through its whole table for each listing. */
  #each(visit: (records: Uint8Array, count: number) => void): number {
    const errno = this.#addon.ctDump(this.#list)
    if (errno < 0) return errno
    for (;;) {
      const count = this.#addon.ctNext(this.#list, this.#records)
      if (count <= 0) return count
      visit(this.#records, count)
    }
  }
}

/**
 * FlowScan lists the connection table in slices, one listing after the other. It has a socket of its own, so a listing can be
 * abandoned at any time, and other code can use the table during a listing. FlowScan keeps the socket, because a process that was
 * given its sockets cannot open another socket.
 */
export class FlowScan {
  readonly #addon: ConntrackAddon
  readonly #records = new Uint8Array(BATCH * FLOW_SIZE)
  #fd: number
  /** True while the kernel has more of a listing. */
  #isListing = false

  constructor(addon: ConntrackAddon) {
    this.#addon = addon
    this.#fd = addon.ctOpen()
  }

  /** Starts a new listing, and discards what is left of an abandoned listing. */
  begin(): void {
    while (this.#isListing) this.#read()
    this.#isListing = this.#fd >= 0 && this.#addon.ctDump(this.#fd) >= 0
  }

  /**
   * Reads about `limit` connections, and visits each connection whose protocol and TCP state `isWanted`. Returns true at the end,
   * or if the kernel refuses.
   */
  next(
    limit: number,
    isWanted: (protocol: number, tcpState: number) => boolean,
    visit: (flow: Flow) => void,
  ): boolean {
    for (let seen = 0; seen < limit;) {
      const count = this.#read()
      if (count === 0) return true
      seen += count
      for (let i = 0; i < count; i++) {
        const at = i * FLOW_SIZE
        const [protocol, state] = [this.#records[at + AT_PROTOCOL]!, this.#records[at + AT_STATE]!]
        if (isWanted(protocol, state)) visit(decodeFlow(this.#records, at))
      }
    }
    return false
  }

  close(): void {
    if (this.#fd >= 0) this.#addon.ctClose(this.#fd)
    this.#fd = -1
  }

  /** Returns how many records were read, or 0 at the end. */
  #read(): number {
    if (!this.#isListing) return 0
    const count = this.#addon.ctNext(this.#fd, this.#records)
    this.#isListing = count > 0
    return Math.max(0, count)
  }
}

/** `ports` are the records as 16-bit numbers. `at` is the octet at which the record begins. */
function hasPort(ports: Uint16Array, at: number, port: number): boolean {
  const first = (at + AT_PORTS) / 2
  for (let i = 0; i < 4; i++) if (ports[first + i] === port) return true
  return false
}

function decodeFlow(records: Uint8Array, at: number): Flow {
  const view = records.slice(at, at + FLOW_SIZE)
  const ports = new Uint16Array(view.buffer, AT_PORTS, 4)
  const tuple = (addresses: number, port: number): FlowTuple => ({
    source: view.subarray(addresses, addresses + ADDRESS),
    target: view.subarray(addresses + ADDRESS, addresses + 2 * ADDRESS),
    sourcePort: ports[port]!,
    targetPort: ports[port + 1]!,
  })
  return {
    family: view[AT_FAMILY] === 4 ? 4 : 6,
    protocol: view[AT_PROTOCOL]!,
    tcpState: view[AT_STATE]!,
    status: new Uint32Array(view.buffer, AT_STATUS, 1)[0]!,
    original: tuple(AT_ORIGINAL, 0),
    reply: tuple(AT_REPLY, 2),
  }
}
