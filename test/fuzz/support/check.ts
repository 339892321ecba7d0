// Compares one reply with the expected one, and the learned addresses with the oracle's.

import type { Daemon } from '../../../src/daemon/daemon.ts'
import {
  EDE_MALFORMED,
  EDE_SOCKET,
  EDE_TIMEOUT,
  faultOfLooseReply,
  localReply,
  SERVFAIL,
  taughtBy,
  truncatedReply,
  udpLimit,
} from './expected.ts'
import { Guarded } from './guarded.ts'
import type { Accepted, Ledger, Pending } from './ledger.ts'
import { readLearned } from './readback.ts'
import type { Tally } from './tally.ts'
import { ATTEMPTS, labelsFor } from './world.ts'

export class Check {
  readonly #daemon: Daemon
  readonly #ledger: Ledger
  readonly #tally: Tally
  readonly #guarded = new Guarded()
  /** Guards no address. */
  readonly #nothing = { has: () => false }

  constructor(options: {
    readonly daemon: Daemon
    readonly ledger: Ledger
    readonly tally: Tally
  }) {
    this.#daemon = options.daemon
    this.#ledger = options.ledger
    this.#tally = options.tally
  }

  /** The fault of the reply to a query, or of what the node learned from it. Undefined if there is none. */
  faultOf(pending: Pending, reply: Uint8Array): string | undefined {
    const { fate, accepted } = pending
    if (fate.kind === 'local') return this.#local(pending, reply, fate.rcode, fate.ede)
    return accepted === undefined
      ? this.#unanswered(pending, reply)
      : this.#answered(pending, reply, accepted)
  }

  #local(
    pending: Pending,
    reply: Uint8Array,
    rcode: number,
    ede: number | undefined,
  ): string | undefined {
    const { query, read } = pending
    this.#tally.count(`answered locally: RCODE ${rcode}, EDE ${ede ?? 'none'}`)
    if (!read.sound) {
      const fault = faultOfLooseReply(reply, query, rcode & 15)
      return fault === undefined ? undefined : `the local answer's ${fault}`
    }
    const wanted = localReply(query, read, rcode, ede)
    return differs('the local answer', wanted, reply) ?? this.#learned(pending, new Map())
  }

  /** Checks a reply although the server sent no acceptable answer. */
  #unanswered(pending: Pending, reply: Uint8Array): string | undefined {
    const { query, read, silent, hangUps } = pending
    const timeout = localReply(query, read, SERVFAIL, EDE_TIMEOUT)
    const socket = localReply(query, read, SERVFAIL, EDE_SOCKET)
    if (silent && hangUps === this.#ledger.hangUps && pending.waits.length < ATTEMPTS) {
      return `given up after ${pending.waits.length} attempts`
    }
    if (silent && Buffer.compare(reply, timeout) === 0) {
      this.#tally.count(`answered locally: RCODE ${SERVFAIL}, EDE ${EDE_TIMEOUT}`)
    } else if (hangUps < this.#ledger.hangUps && Buffer.compare(reply, socket) === 0) {
      this.#tally.count(`answered locally: RCODE ${SERVFAIL}, EDE ${EDE_SOCKET}`)
    } else {
      return `replied to without an acceptable answer: ${hex(reply)}`
    }
    return this.#learned(pending, new Map())
  }

  #answered(pending: Pending, reply: Uint8Array, accepted: Accepted): string | undefined {
    const { query, read, client } = pending
    const taught = taughtBy(accepted.octets, read, this.#guarded)
    if (taught === undefined) {
      this.#tally.count(`answered locally: RCODE ${SERVFAIL}, EDE ${EDE_MALFORMED}`)
      const wanted = localReply(query, read, SERVFAIL, EDE_MALFORMED)
      return differs('a malformed answer', wanted, reply) ?? this.#learned(pending, new Map())
    }
    const all = taughtBy(accepted.octets, read, this.#nothing)?.size ?? 0
    if (all > taught.size) this.#tally.guarded++
    if (accepted.mutated && taught.size > 0) this.#tally.passed.taught++
    const isShorter = reply.length < accepted.octets.length
    const overTcp = accepted.overTcp || (accepted.again === true && isShorter)
    const short = !client.overTcp && accepted.octets.length > udpLimit(read, overTcp)
    this.#tally.count(short ? 'passed, cut to TC=1 for a UDP client' : 'passed byte for byte')
    return (
      (short ? cutFault(pending, reply, accepted) : passFault(pending, reply, accepted)) ??
      this.#learned(pending, taught)
    )
  }

  /** The node must have learned exactly these addresses under the name, for the asking endpoint, with the right times and labels. */
  #learned(pending: Pending, taught: ReadonlyMap<string, number>): string | undefined {
    const { read, client, tick } = pending
    const learned = readLearned(this.#daemon, read.labels)
    const now = this.#daemon.core.names.tick()
    const got = learned.map(({ address }) => address).sort()
    const wanted = [...taught.keys()].sort()
    if (got.join() !== wanted.join())
      return `taught [${got.join()}], the oracle says [${wanted.join()}]`
    const labels = labelsFor(read.labels)
    for (const each of learned) {
      const ttl = taught.get(each.address) ?? 0
      const from = each.liveUntil - ttl
      if (from < tick || from > now) {
        return `${each.address} lives until ${each.liveUntil}: asked at ${tick}, now ${now}, oracle’s TTL ${ttl}`
      }
      if (each.endpoints.join() !== client.who)
        return `${each.address} is for ${each.endpoints.join()}`
      if (labels.some((label) => each.labels?.includes(label) !== true)) {
        return `${each.address} is enforced with [${each.labels?.join()}], wanted [${labels.join()}]`
      }
    }
    this.#tally.addresses += learned.length
    return undefined
  }
}

/** The reply must be the server's octets with the client's id, and the client's letters in the question. */
function passFault(
  { query, read }: Pending,
  reply: Uint8Array,
  accepted: Accepted,
): string | undefined {
  const wanted = Buffer.from(accepted.octets)
  wanted.set(query.subarray(0, 2))
  if (wanted.readUInt16BE(4) === 1) wanted.set(query.subarray(12, read.questionEnd), 12)
  return differs('the passed answer', wanted, reply)
}

function cutFault(
  { query, read }: Pending,
  reply: Uint8Array,
  accepted: Accepted,
): string | undefined {
  const wanted = truncatedReply(query, read, accepted.octets)
  const got = Buffer.from(reply)
  // The upper bits of the RCODE are in the OPT record after the question.
  if (read.opt !== undefined && got.length === wanted.length) got[read.questionEnd + 5] = 0
  return differs('the shortened answer', wanted, got)
}

function differs(what: string, wanted: Uint8Array, got: Uint8Array): string | undefined {
  if (Buffer.compare(wanted, got) === 0) return undefined
  return `${what} should be ${hex(wanted)}, is ${hex(got)}`
}

export function hex(octets: Uint8Array): string {
  return Buffer.from(octets).toString('hex')
}
