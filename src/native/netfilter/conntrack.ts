// The kernel's connection table, typed: forget DNS flows, list flows, and ask which server a redirected client
// had asked. One netlink socket for listing and finding, one for deleting meanwhile. `open` says why when the
// kernel has no connection tracking or refuses; nothing here throws for that. Errors are negative errno values.
//
// `originalOf` costs one system call pair, some microseconds, and allocates nothing; the rest is off the packet path.

import type { Family } from '../../core/ip.ts'
import { loadConntrack, type ConntrackAddon } from '../native.ts'

/** Octets of one entry as the addon writes it (layout: conntrack-message.h). */
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

/** One direction of a flow; addresses are 16 octets (core/ip.ts). */
export interface FlowTuple {
  readonly source: Uint8Array
  readonly target: Uint8Array
  readonly sourcePort: number
  readonly targetPort: number
}

export interface Flow {
  readonly family: Family
  readonly protocol: number
  /** TCP_CONNTRACK_*: 1 SYN sent, 2 SYN received, 3 established, 4-7 closing; 0 for other protocols. */
  readonly tcpState: number
  /** IPS_* bits: 2 a reply was seen, 4 assured, 16 and 32 source and destination rewritten. */
  readonly status: number
  readonly original: FlowTuple
  readonly reply: FlowTuple
}

export type OpenedConntrack =
  | { readonly kind: 'open'; readonly table: Conntrack }
  /** `errno` is negative: EPERM without CAP_NET_ADMIN, others where the kernel has no ctnetlink. */
  | { readonly kind: 'absent'; readonly errno: number }

/** Opens the table of this thread's network namespace. */
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
  readonly #onePorts = new Uint16Array(this.#one.buffer)

  constructor(addon: ConntrackAddon, list: number, remove: number) {
    this.#addon = addon
    this.#list = list
    this.#remove = remove
  }

  close(): void {
    this.#addon.ctClose(this.#list)
    if (this.#remove >= 0) this.#addon.ctClose(this.#remove)
  }

  /** 0 when the kernel answers for both families, else its errno. */
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

  /** Forgets every flow that has the port on any side, of these protocols. How many went; negative: errno. */
  flushPort(port: number, protocols: readonly number[], families: readonly Family[]): number {
    let gone = 0
    for (const family of families) {
      // Entries may be passed over while the table changes under the listing: until a pass finds none.
      for (let pass = 0; pass < PASSES_MAX; pass++) {
        const found = this.#flushOnce(family, port, protocols)
        if (found < 0) return found
        if (found === 0) break
        gone += found
      }
    }
    return gone
  }

  #flushOnce(family: Family, port: number, protocols: readonly number[]): number {
    let [gone, failed] = [0, 0]
    const errno = this.#each(family, (records, count) => {
      const ports = new Uint16Array(records.buffer)
      for (let i = 0; i < count; i++) {
        const at = i * FLOW_SIZE
        if (!protocols.includes(records[at]!) || !hasPort(ports, at, port)) continue
        const result = this.#addon.ctDelete(this.#remove, records.subarray(at, at + FLOW_SIZE))
        if (result === 0) gone++
        else if (result !== ENOENT) failed = result
      }
    })
    if (errno !== 0) return errno
    return failed === 0 ? gone : failed
  }

  /** Every flow of a family, in no order; 0 or errno at the end. */
  dump(family: Family, visit: (flow: Flow) => void): number {
    return this.#each(family, (records, count) => {
      for (let i = 0; i < count; i++) visit(decodeFlow(records, i * FLOW_SIZE))
    })
  }

  /** Forgets every flow that `isGone` says so of; failures are left for a later pass. */
  forgetFlows(isGone: (flow: Flow) => boolean): void {
    for (const family of [4, 6] as const) {
      this.#each(family, (records, count) => {
        for (let i = 0; i < count; i++) {
          const at = i * FLOW_SIZE
          if (!isGone(decodeFlow(records, at))) continue
          this.#addon.ctDelete(this.#remove, records.subarray(at, at + FLOW_SIZE))
        }
      })
    }
  }

  #each(family: Family, visit: (records: Uint8Array, count: number) => void): number {
    const errno = this.#addon.ctDump(this.#list, family)
    if (errno < 0) return errno
    for (;;) {
      const count = this.#addon.ctNext(this.#list, this.#records)
      if (count <= 0) return count
      visit(this.#records, count)
    }
  }

  /**
   * The server that a redirected client asked, by the packet as it reached us: from the client at `clientPort`
   * to our own address and port. Writes its address into `into` (16 octets); its port is returned. Negative:
   * ENOENT when no such flow is known, or another errno.
   */
  originalOf(
    protocol: number,
    family: Family,
    client: Uint8Array,
    clientPort: number,
    own: Uint8Array,
    ownPort: number,
    into: Uint8Array,
  ): number {
    const record = this.#one
    record.fill(0)
    record[AT_PROTOCOL] = protocol
    record[AT_FAMILY] = family
    for (let i = 0; i < ADDRESS; i++) {
      record[AT_REPLY + i] = own[i]!
      record[AT_REPLY + ADDRESS + i] = client[i]!
    }
    this.#onePorts[AT_PORTS / 2 + 2] = ownPort
    this.#onePorts[AT_PORTS / 2 + 3] = clientPort
    const errno = this.#addon.ctFind(this.#list, record)
    if (errno !== 0) return errno
    for (let i = 0; i < ADDRESS; i++) into[i] = record[AT_ORIGINAL + ADDRESS + i]!
    return this.#onePorts[AT_PORTS / 2 + 1]!
  }
}

/**
 * Listings in slices, one after the other, by one socket of its own: a listing may be left at any time, and others may use the
 * table meanwhile. The socket is kept, since where it was given to us there is no other.
 */
export class FlowScan {
  readonly #addon: ConntrackAddon
  readonly #records = new Uint8Array(BATCH * FLOW_SIZE)
  #families: Family[] = []
  #fd: number
  #isListing = false

  constructor(addon: ConntrackAddon) {
    this.#addon = addon
    this.#fd = addon.ctOpen()
  }

  /** Begins anew; what a listing that was left still has to say is passed over. */
  begin(): void {
    while (this.#isListing) this.#isListing = this.#addon.ctNext(this.#fd, this.#records) > 0
    this.#families = [4, 6]
  }

  /** Visits about `limit` flows, those whose protocol and TCP state `isWanted`; true at the end, or when the kernel refuses to go on. */
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

  /** How many records were read; 0 at the end. */
  #read(): number {
    for (;;) {
      const family = this.#families[0]
      if (family === undefined || this.#fd < 0) break
      if (!this.#isListing && this.#addon.ctDump(this.#fd, family) < 0) break
      this.#isListing = true
      const count = this.#addon.ctNext(this.#fd, this.#records)
      if (count > 0) return count
      this.#isListing = false
      this.#families.shift()
    }
    return 0
  }
}

/** `ports`: the records as 16-bit numbers; `at`: where the record begins, in octets. */
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
