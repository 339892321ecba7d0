// This file reads what the nftables datapath reports: drops and audits from nflog, and counters.
//
// The rules report a bounded number of packets per second, and the kernel never waits. A report has the first octets of the
// packet and the log prefix of the rule, which is a text with the reason. It often has the time. It has no identity and no rule:
// `explain` finds both in the mirror when the report is read. The kernel writes the time by the wall clock. Before Linux 6.6 it
// does so only if something else makes it record packet times. Without a time in the report, the time of reading is used. If someone
// changes the wall clock, the time of a packet can come out too early. So it is never earlier than HELD_BACK_MS before the last look
// that found no report.

import type { Clock } from '../../core/clock.ts'
import { type EndpointId, identity, ruleId } from '../../core/ids.ts'
import type { NetlinkAddon } from '../../native/netfilter/nftables.ts'
import type { DatapathEvent, DropReason } from '../entries.ts'
import { familyOf, readReportedPacket, type ReportedPacket } from './reported-packet.ts'
import { COUNTERS, LOG_AUDIT, LOG_DENY, LOG_GROUP, LOG_OCTETS, TABLE } from './rules/layout.ts'
import { FAMILY_INET, Message } from './netlink/message.ts'
import { BODY, Reader } from './netlink/reader.ts'
import { worldOf } from '../../identity/reserved.ts'
import { outcomeOf } from '../verdict.ts'
import type { Table } from './tables/table.ts'
import type { DatapathCounters } from '../abilities.ts'
import type { Taken } from './commit.ts'

const CONFIG = (4 << 8) | 1
const PACKET = 4 << 8
const BUFFER = 1024 * 1024
const RECEIVE = 65_536
const COMMAND_BIND = 1
const COPY_PACKET = 2

const CFG_COMMAND = 1
const CFG_MODE = 2
const CFG_TIMEOUT = 4
const TIMESTAMP = 3
const IN_DEVICE = 4
const OUT_DEVICE = 5
const PAYLOAD = 9
const PREFIX = 10
const ENOBUFS = 105
/** The kernel holds a report back for 10 ms, or somewhat longer if it is busy. */
const HELD_BACK_MS = 50

export interface EventsOptions {
  readonly netlink: NetlinkAddon
  readonly clock: Clock
  readonly indexOwner: (index: number) => EndpointId | undefined
  readonly explain: (endpoint: EndpointId, packet: ReportedPacket) => Explanation
}

/** The fields of an event for a packet that cannot be read. */
const UNREADABLE = {
  peer: new Uint8Array(16),
  protocol: 0,
  port: 0,
  localPort: 0,
  opening: false,
  identity: identity(0),
  rule: ruleId(0),
} as const

interface Report {
  /** Wall-clock milliseconds; 0 if the kernel does not report the time. */
  readonly time: number
  readonly prefix: string
  readonly inDevice: number
  readonly outDevice: number
  readonly packet: Uint8Array
}

export class Events {
  readonly #options: EventsOptions
  readonly #fd: number
  readonly #received = new Uint8Array(RECEIVE)
  #waiting: Report[] = []
  #lost = 0
  /** `Clock.now()` of the last look that found nothing waiting. */
  #emptyAt: number

  constructor(options: EventsOptions) {
    this.#options = options
    this.#emptyAt = options.clock.now()
    this.#fd = openGroup(options.netlink)
  }

  /** How often the kernel had no room for reports. */
  get lost(): number {
    return this.#lost
  }

  drain(limit: number, visit: (event: DatapathEvent) => void): void {
    let left = limit
    while (left > 0) {
      const looked = this.#options.clock.now()
      if (this.#waiting.length === 0 && !this.#receive()) {
        this.#emptyAt = looked
        return
      }
      for (const report of this.#waiting.splice(0, left)) {
        left--
        const event = this.#decode(report)
        if (event !== undefined) visit(event)
      }
    }
  }

  close(): void {
    if (this.#fd >= 0) this.#options.netlink.nlClose(this.#fd)
  }

  #receive(): boolean {
    if (this.#fd < 0) return false
    const got = this.#options.netlink.nlReceive(this.#fd, this.#received, 0)
    if (got === -ENOBUFS) {
      this.#lost++
      return this.#receive()
    }
    if (got <= 0) return false
    const reader = new Reader(this.#received)
    reader.messages(got, (type, _flags, from, end) => {
      if (type === PACKET) this.#waiting.push(readReport(reader, from + BODY, end))
    })
    return true
  }

  /** The `seen` and `age` of an event. */
  #timesOf(time: number): Pick<DatapathEvent, 'seen' | 'age'> {
    const { clock } = this.#options
    const now = clock.now()
    const age = time === 0 ? 0 : Math.max(0, clock.wall() - time)
    return { seen: Math.max(now - age, Math.min(now, this.#emptyAt - HELD_BACK_MS)), age }
  }

  #decode({ time, prefix, inDevice, outDevice, packet }: Report): DatapathEvent | undefined {
    const { indexOwner, explain } = this.#options
    const endpoint = indexOwner(inDevice) ?? indexOwner(outDevice)
    if (endpoint === undefined) return undefined
    const isAudit = prefix.startsWith(LOG_AUDIT)
    const reason = reasonOf(prefix.slice((isAudit ? LOG_AUDIT : LOG_DENY).length).trim())
    const verdict = isAudit ? 'audit' : 'deny'
    const head = { ...this.#timesOf(time), verdict, reason, endpoint } as const
    const read = reason === 'malformed' ? undefined : readReportedPacket(packet)
    if (read === undefined) return { ...head, ...UNREADABLE, family: familyOf(packet) }
    const why = explain(endpoint, read)
    return {
      ...head,
      family: read.family,
      peer: read.target,
      protocol: read.protocol,
      port: read.targetPort,
      localPort: read.sourcePort,
      opening: read.opening,
      identity: identity(why.identity),
      rule: ruleId(reason === 'policy' ? why.rule : 0),
    }
  }
}

function readReport(reader: Reader, from: number, end: number): Report {
  const report = { time: 0, prefix: '', inDevice: 0, outDevice: 0, packet: new Uint8Array(0) }
  reader.attributes(from, end, (type, at, to) => {
    if (type === TIMESTAMP) report.time = reader.u64(at) * 1000 + reader.u64(at + 8) / 1000
    else if (type === PREFIX) report.prefix = reader.text(at, to)
    else if (type === IN_DEVICE) report.inDevice = reader.u32(at)
    else if (type === OUT_DEVICE) report.outDevice = reader.u32(at)
    else if (type === PAYLOAD) report.packet = reader.octets.slice(at, to)
  })
  return report
}

function reasonOf(text: string): DropReason {
  return text === 'source' || text === 'malformed' ? text : 'policy'
}

/** Joins the group. Returns a negative number on failure: another process has the group, or the kernel has no nflog. */
function openGroup(netlink: NetlinkAddon): number {
  const fd = netlink.nlOpen(BUFFER)
  if (fd < 0) return fd
  const message = new Message(256)
  const results = new Uint32Array(64)
  message.beginOther(CONFIG, 0x4, 0, LOG_GROUP)
  message.u8(CFG_COMMAND, COMMAND_BIND)
  const mode = message.space(CFG_MODE, 6)
  message.putShort(mode + 2, LOG_OCTETS)
  message.putByte(mode + 4, COPY_PACKET)
  message.u32(CFG_TIMEOUT, 1)
  message.end()
  const count = netlink.nlRequest(fd, message.octets, message.size, results)
  if (count > 0 && results[1] === 0) return fd
  netlink.nlClose(fd)
  return -1
}

export interface Explanation {
  readonly identity: number
  readonly rule: number
}

export function explain(
  { prefixes, policies }: Table,
  endpoint: EndpointId,
  isScoped: boolean,
  packet: ReportedPacket,
): Explanation {
  const { family, target, protocol, targetPort } = packet
  const scopes = isScoped ? [endpoint, 0] : [0]
  const known = scopes
    .map((scope) => prefixes.longest(scope, family, target))
    .find(([id]) => id !== 0)
  const [id, addressClass] = known ?? [worldOf(family), worldOf(family)]
  const found = [id, addressClass, 0].flatMap(
    (key) => policies.find(endpoint, identity(key), protocol, targetPort) ?? [],
  )
  const { by } = outcomeOf(found.map(({ verdict }) => verdict))
  return { identity: id, rule: found.find(({ verdict }) => verdict === by)?.rule ?? 0 }
}

const GET_OBJECT = 19
const NAME = 2
const DATA = 4
const PACKETS = 2

export class Counters {
  readonly #table: Table
  readonly #base = new Map<string, number>()
  readonly #last = new Map<string, number>()
  #writes = { policy: 0, prefixes: 0, endpoints: 0 }

  constructor(table: Table) {
    this.#table = table
  }

  add({ counts }: Taken): void {
    this.#writes.policy += counts.policy
    this.#writes.prefixes += counts.prefixes
    this.#writes.endpoints += counts.endpoints
  }

  read(): DatapathCounters {
    this.#readKernel()
    const kernel = COUNTERS.map((name) => {
      return [name, (this.#base.get(name) ?? 0) + (this.#last.get(name) ?? 0)] as const
    })
    return {
      ...Object.fromEntries(kernel),
      drop_fragment: 0,
      connections_over_limit: 0,
      map_writes_ipcache: this.#writes.prefixes,
      map_writes_policy: this.#writes.policy,
      map_writes_endpoints: this.#writes.endpoints,
      table_repairs: this.#table.repairs,
    }
  }

  #readKernel(): void {
    const { socket, message } = this.#table
    const request = (to: Message, flags: number): void => {
      to.begin(GET_OBJECT, flags, FAMILY_INET)
      to.text(1, TABLE)
      to.end()
    }
    socket.list(request, message, (reader, from, end) => {
      let [name, packets] = ['', 0]
      reader.attributes(from, end, (type, at, to) => {
        if (type === NAME) name = reader.text(at, to)
        if (type !== DATA) return
        const value = reader.find(at, to, PACKETS)
        if (value >= 0) packets = reader.u64(value)
      })
      const last = this.#last.get(name) ?? 0
      if (packets < last) this.#base.set(name, (this.#base.get(name) ?? 0) + last)
      this.#last.set(name, packets)
    })
  }
}
