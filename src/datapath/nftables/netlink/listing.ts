// What a listing came to: the parts that the kernel hands over one by one, read at once or with pauses. A listing during which
// something changed is made again, but the last attempt counts as it is.

import { errnoName } from '../../../native/native.ts'
import { NOT_YET, type NetlinkAddon } from '../../../native/netfilter/nftables.ts'
import type { Message } from './message.ts'
import { BODY, DONE, ERROR, INTERRUPTED, Reader } from './reader.ts'

/** Undefined when all is there, else an errno name. */
export type Outcome = string | undefined
/** Visits the body of one message. */
export type VisitMessage = (reader: Reader, from: number, end: number) => void

export const ATTEMPTS = 5
/** Octets that one part has at most. */
export const PART = 65_536
/** How long one step waits for the kernel. */
const STEP_MS = 1

export interface PartEnd {
  /** Or `interrupted`. */
  readonly outcome: Outcome
  readonly isLast: boolean
  /** Octets that have messages of the listing. */
  readonly size: number
}

/** How a part of so many octets ends. */
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

/** A listing by a thread of its own; a step takes a millisecond or two. `interrupted`: with what changed meanwhile or without. */
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
