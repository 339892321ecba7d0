// This file reads the outcome of a listing. The kernel delivers a listing in parts, which are read at once or with pauses. If
// something changed during a listing, the listing is repeated. The last attempt is used as it is.

import { errnoName } from '../../../native/native.ts'
import { NOT_YET, type NetlinkAddon } from '../../../native/netfilter/nftables.ts'
import type { Message } from './message.ts'
import { BODY, DONE, ERROR, INTERRUPTED, Reader } from './reader.ts'

/** Undefined if the listing is complete, else an errno name. */
export type Outcome = string | undefined
/** Visits the body of one message. */
export type VisitMessage = (reader: Reader, from: number, end: number) => void

export const ATTEMPTS = 5
/** Most octets of one part. */
export const PART = 65_536
/** Milliseconds that one step waits for the kernel. */
const STEP_MS = 1

export interface PartEnd {
  /** An `Outcome`, or `interrupted` if something changed during the listing. */
  readonly outcome: Outcome
  readonly isLast: boolean
  /** How many octets contain messages of the listing. */
  readonly size: number
}

/** Finds how a part with `received` octets ends. */
export function endOfPart(part: Uint8Array, received: number): PartEnd {
  const reader = new Reader(part)
  let [outcome, isLast, size]: [Outcome, boolean, number] = [undefined, false, 0]
  reader.messages(received, (type, flags, from, to) => {
    if ((flags & INTERRUPTED) !== 0) outcome = 'interrupted'
    if (type === DONE) isLast = true
    else if (type === ERROR) {
      isLast = true
      const errno = reader.signed(from + 16)
      if (errno !== 0) outcome = errnoName(errno)
    } else size = to
  })
  return { outcome, isLast, size }
}

export function visitPart(part: Uint8Array, visit: VisitMessage): void {
  const reader = new Reader(part)
  reader.messages(part.length, (_type, _flags, from, end) => visit(reader, from + BODY, end))
}

/**
 * Makes a listing on a thread of its own. A step takes a millisecond or two. With outcome `interrupted`, the listing may have or
 * lack each change that was made during it.
 */
export function* listInSlices(
  netlink: NetlinkAddon,
  request: Message,
  visit: VisitMessage,
  attempts = ATTEMPTS,
): Generator<undefined, Outcome> {
  const asked = request.octets.slice(0, request.size)
  for (let attempt = 1; ; attempt++) {
    const parts: Uint8Array[] = []
    const outcome = yield* receive(netlink, asked, parts)
    if (outcome === 'interrupted' && attempt < attempts) continue
    if (outcome !== undefined && outcome !== 'interrupted') return outcome
    for (const part of parts) {
      visitPart(part, visit)
      yield undefined
    }
    return outcome
  }
}

function* receive(
  netlink: NetlinkAddon,
  request: Uint8Array,
  into: Uint8Array[],
): Generator<undefined, Outcome> {
  const reader = netlink.nlReader(request, request.length)
  if (typeof reader === 'number') return errnoName(reader)
  const part = new Uint8Array(PART)
  let outcome: Outcome
  try {
    for (;;) {
      const got = netlink.nlPart(reader, part, STEP_MS)
      if (got === 0) return outcome
      if (got > 0) {
        const end = endOfPart(part, got)
        outcome ??= end.outcome
        if (end.size > 0) into.push(part.slice(0, end.size))
      } else if (got !== NOT_YET) return errnoName(got)
      yield undefined
    }
  } finally {
    netlink.nlReaderEnd(reader)
  }
}
