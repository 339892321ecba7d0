// The verdict on one packet, step by step as in the header of src/datapath/datapath.ts: the model of
// src/datapath/ebpf/programs/namegate.bpf.c, whose header has the rules that the port leaves open.

import { identity, ruleId, type EndpointId, type RuleId } from '../../../../src/core/ids.ts'
import { containsPrefix, widthOf, type Family } from '../../../../src/core/ip.ts'
import { TCP, UDP } from '../../../../src/core/protocol.ts'
import { ANY_IDENTITY, HOST, worldOf } from '../../../../src/identity/reserved.ts'
import type {
  DatapathEvent,
  DropReason,
  EndpointEntry,
  Mode,
} from '../../../../src/datapath/entries.ts'
import { NODE_SCOPE } from '../../../../src/datapath/prefix-batch.ts'
import { longestMatch, outcomeOf, type Outcome } from '../../../../src/datapath/verdict.ts'
import { isOpening, type Connections } from './connections.ts'
import type { CounterName } from './counters.ts'
import { isHousekeeping, neighboursIn } from './neighbour.ts'
import { isFollowed, TCP_FIN, TCP_RST, type Packet, type ReadResult } from './packet.ts'
import type { Policies } from '../../../../src/datapath/memory/policies.ts'
import type { PrefixValue, Prefixes } from '../../../../src/datapath/memory/prefixes.ts'

export type Verdict = 'pass' | 'drop'

export interface JudgeOptions {
  readonly prefixes: Prefixes
  readonly policies: Policies
  readonly connections: Connections
  readonly mode: Mode
  readonly isListener: (family: Family, address: Uint8Array, port: number) => boolean
  /** Whether the packet belongs to a connection older than the endpoint's enforcement. `denied`: a deny rule refuses the packet. */
  readonly isAdopted: (entry: EndpointEntry, packet: Packet, denied: boolean) => boolean
  /** Whether interception rules redirect a packet that came in on the endpoint's interface. */
  readonly isIntercepted: (entry: EndpointEntry, packet: Packet) => boolean
  /** Whether a packet to the address and port of a listener reaches it. */
  readonly reachesListener: (entry: EndpointEntry, packet: Packet) => boolean
  /** Whether a packet that leaves by the endpoint's interface begins no connection. */
  readonly isQuiet: (entry: EndpointEntry, packet: Packet) => boolean
  readonly count: (name: CounterName) => void
  readonly now: () => number
  readonly report: (event: DatapathEvent) => void
  readonly noteDnsSource: (endpoint: EndpointId, packet: Packet) => void
}

/** Identity and class of a packet's address. */
type Place = PrefixValue

interface Found {
  readonly verdict: Outcome['verdict']
  readonly rule: RuleId
}

const NOWHERE: Place = { identity: ANY_IDENTITY, addressClass: ANY_IDENTITY }
const ANY_ADDRESS = new Uint8Array(16)

export class Judge {
  readonly #options: JudgeOptions

  constructor(options: JudgeOptions) {
    this.#options = options
  }

  /** Judges a packet that an endpoint sends. */
  from(entry: EndpointEntry | undefined, read: ReadResult): Verdict {
    const { mode, count } = this.#options
    if (mode === 'bypass') count('verdict_bypass')
    if (entry === undefined) {
      if (mode === 'bypass') return 'pass'
      count('drop_no_endpoint')
      return 'drop'
    }
    return entry.hook.kind === 'cgroup'
      ? this.#fromCgroup(entry, read)
      : this.#fromInterface(entry, read)
  }

  /** Judges a packet that an endpoint receives. Drops nothing, but follows connections. */
  to(entry: EndpointEntry | undefined, read: ReadResult): void {
    const { mode, connections } = this.#options
    if (mode === 'bypass' || entry === undefined || read.kind !== 'ip') return
    const { packet } = read
    if (entry.hook.kind !== 'cgroup') {
      for (const address of neighboursIn(packet)) connections.learnNeighbour(entry, address)
    }
    if (this.#options.isQuiet(entry, packet)) return
    const place = this.#placeOf(entry, packet.family, packet.source)
    if (this.#isListener(packet, packet.source, packet.sourcePort, place)) return
    connections.follow(entry, packet, false)
  }

  #fromInterface(entry: EndpointEntry, read: ReadResult): Verdict {
    const { mode, count, connections } = this.#options
    if (mode === 'bypass' || read.kind === 'arp') return 'pass'
    if (read.kind === 'malformed') return this.#refuse(entry, undefined, 'malformed')
    const { packet } = read
    if (isHousekeeping(packet, (address) => connections.isNeighbour(entry, address))) {
      count('verdict_neighbour')
      return 'pass'
    }
    const place = this.#placeOf(entry, packet.family, packet.target)
    if (!ownsSource(entry, packet)) return this.#refuse(entry, packet, 'source', place)
    if (this.#goesToListener(entry, packet, place)) {
      count('verdict_listener')
      return 'pass'
    }
    if (isEntered(entry) && this.#options.isIntercepted(entry, packet)) {
      count('verdict_intercepted')
      return 'pass'
    }
    return this.#admit(entry, packet, place)
  }

  #fromCgroup(entry: EndpointEntry, read: ReadResult): Verdict {
    const { mode, count, noteDnsSource } = this.#options
    if (read.kind !== 'ip') {
      return mode === 'bypass' ? 'pass' : this.#refuse(entry, undefined, 'malformed')
    }
    const { packet } = read
    const place = isLoopback(packet)
      ? { identity: HOST, addressClass: HOST }
      : this.#placeOf(entry, packet.family, packet.target)
    if (this.#goesToListener(entry, packet, place)) {
      noteDnsSource(entry.id, packet)
      count('verdict_listener')
      return 'pass'
    }
    return mode === 'bypass' ? 'pass' : this.#admit(entry, packet, place)
  }

  #admit(entry: EndpointEntry, packet: Packet, place: Place): Verdict {
    const { connections, count } = this.#options
    let verdict: Verdict = 'pass'
    if (connections.isReply(entry, packet)) count('verdict_reply')
    else verdict = this.#decide(entry, packet, place)
    const ends = packet.protocol === TCP && (packet.tcpFlags & (TCP_FIN | TCP_RST)) !== 0
    if (verdict === 'pass' || ends) connections.follow(entry, packet, true)
    return verdict
  }

  #decide(entry: EndpointEntry, packet: Packet, place: Place): Verdict {
    const { mode, count } = this.#options
    const found = this.#consult(entry.id, packet, place)
    const reason = packet.laterFragment ? 'fragment' : 'policy'
    if (found.verdict === 'allow') {
      count('verdict_allow')
      return 'pass'
    }
    const denied = found.verdict === 'deny'
    if (found.verdict !== 'audit' && this.#options.isAdopted(entry, packet, denied)) {
      count('verdict_adopted')
      return 'pass'
    }
    if (found.verdict === 'audit' || mode === 'audit' || entry.audit) {
      count('verdict_audit')
      this.#report('audit', entry, packet, reason, place, found.rule)
      return 'pass'
    }
    if (!entry.enforcing) {
      count('verdict_not_enforcing')
      return 'pass'
    }
    return this.#refuse(entry, packet, reason, place, found.rule)
  }

  #consult(endpoint: EndpointId, packet: Packet, place: Place): Found {
    const { policies } = this.#options
    const { protocol, laterFragment } = packet
    const port = laterFragment ? undefined : isFollowed(packet) ? packet.targetPort : 0
    const keys = [place.identity, place.addressClass, ANY_IDENTITY]
    const found = keys.flatMap(
      (key) => longestMatch(policies.entriesOf(endpoint, key), protocol, port) ?? [],
    )
    const { verdict, by } = outcomeOf(found.map((each) => each.verdict))
    return { verdict, rule: found.find((each) => each.verdict === by)?.rule ?? ruleId(0) }
  }

  #goesToListener(entry: EndpointEntry, packet: Packet, place: Place): boolean {
    const isListener = this.#isListener(packet, packet.target, packet.targetPort, place)
    return isListener && this.#options.reachesListener(entry, packet)
  }

  #isListener(packet: Packet, address: Uint8Array, port: number, place: Place): boolean {
    const { family, protocol, laterFragment } = packet
    if (laterFragment || (protocol !== TCP && protocol !== UDP)) return false
    if (this.#options.isListener(family, address, port)) return true
    return place.addressClass === HOST && this.#options.isListener(family, ANY_ADDRESS, port)
  }

  /** The longest prefix around an address. A scoped endpoint looks in its own scope first, then in the node's. */
  #placeOf({ id, scoped }: EndpointEntry, family: Family, address: Uint8Array): Place {
    const { prefixes } = this.#options
    for (const scope of scoped === true ? [id, NODE_SCOPE] : [NODE_SCOPE]) {
      for (let length = widthOf(family); length >= 0; length--) {
        const found = prefixes.around(scope, family, address, length)
        if (found !== undefined) return found
      }
    }
    return { identity: worldOf(family), addressClass: worldOf(family) }
  }

  #refuse(
    entry: EndpointEntry,
    packet: Packet | undefined,
    reason: DropReason,
    place = NOWHERE,
    rule = ruleId(0),
  ): Verdict {
    this.#options.count(`drop_${reason}`)
    this.#report('deny', entry, packet, reason, place, rule)
    return 'drop'
  }

  #report(
    verdict: 'deny' | 'audit',
    entry: EndpointEntry,
    packet: Packet | undefined,
    reason: DropReason,
    place: Place,
    rule: RuleId,
  ): void {
    this.#options.report({
      verdict,
      reason,
      seen: this.#options.now(),
      age: 0,
      endpoint: entry.id,
      family: packet?.family ?? 4,
      peer: packet?.target ?? ANY_ADDRESS,
      protocol: packet?.protocol ?? 0,
      port: packet?.targetPort ?? 0,
      localPort: packet?.sourcePort ?? 0,
      opening: packet !== undefined && isOpening(packet),
      identity: identity(place.identity),
      rule,
    })
  }
}

function ownsSource(entry: EndpointEntry, { family, source }: Packet): boolean {
  const address = { family, octets: source, length: family === 4 ? 32 : 128 }
  return entry.sources.some((prefix) => containsPrefix(prefix, address))
}

/** Interception rules redirect packets that come in by an interface, but not packets that an endpoint behind it sends. */
function isEntered({ hook }: EndpointEntry): boolean {
  return hook.kind === 'interface' && hook.side === 'ingress'
}

function isLoopback({ family, target }: Packet): boolean {
  if (family === 4) return target[0] === 127
  return target[15] === 1 && target.subarray(0, 15).every((octet) => octet === 0)
}
