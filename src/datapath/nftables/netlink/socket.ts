// Socket has the two netlink sockets of the adapter. The first is for requests that are answered at once (start, dump, mode). The
// second is for commits, which a thread applies. Every failure is an errno name. The constructor and `watch` throw if a socket
// cannot be opened.

import { UnavailableError } from '../../../core/errors.ts'
import { errnoName } from '../../../native/native.ts'
import { NOT_YET, type NetlinkAddon } from '../../../native/netfilter/nftables.ts'
import {
  ATTEMPTS,
  endOfPart,
  listInSlices,
  PART,
  visitPart,
  type Outcome,
  type VisitMessage,
} from './listing.ts'
import { ACK, DUMP, type Message } from './message.ts'

/** Room for a batch of some 200,000 elements. Without the right to this size, the kernel gives less. */
const BUFFER = 16 * 1024 * 1024
const RESULTS = 1024
const REMEDY =
  'run as root or with CAP_NET_ADMIN in the network namespace, on a kernel with nf_tables (CONFIG_NF_TABLES_INET, module nf_tables)'

export class Socket {
  readonly #netlink: NetlinkAddon
  readonly #now: number
  readonly #later: number
  readonly #worker: object
  readonly #results = new Uint32Array(RESULTS * 2)
  readonly #received = new Uint8Array(PART)

  /** The event loop calls `onDone` when a submitted batch is done. */
  constructor(netlink: NetlinkAddon, onDone: () => void) {
    this.#netlink = netlink
    this.#now = open(netlink)
    this.#later = open(netlink)
    const worker = netlink.nlWorker(this.#later, onDone)
    if (typeof worker === 'number') throw unavailable('start a thread for nftables', worker)
    this.#worker = worker
  }

  /** Most octets of one batch. */
  get room(): number {
    return Math.min(this.#netlink.nlRoom(this.#now), this.#netlink.nlRoom(this.#later))
  }

  /** Applies a batch before it returns. */
  apply(batch: Message): Outcome {
    const count = this.#netlink.nlRequest(this.#now, batch.octets, batch.size, this.#results)
    return this.#outcome(count)
  }

  /** Hands a batch to the thread. */
  submit(batch: Message): Outcome {
    const result = this.#netlink.nlSubmit(this.#worker, batch.octets, batch.size)
    return result < 0 ? errnoName(result) : undefined
  }

  /** Returns the outcome of the submitted batch, or `busy` while the batch is under way. */
  take(wait: boolean): { readonly outcome: Outcome } | 'busy' {
    const count = this.#netlink.nlTake(this.#worker, this.#results, wait ? 1 : 0)
    if (count === NOT_YET) return 'busy'
    return { outcome: this.#outcome(count) }
  }

  /** Requests a listing and visits each message of the answer. Returns false if there is nothing to list. */
  list(request: (to: Message, flags: number) => void, to: Message, visit: VisitMessage): boolean {
    to.clear()
    request(to, DUMP)
    return this.#exchange(to, visit) === undefined
  }

  /**
   * Does the same as `list`, with pauses while the kernel lists. It uses another socket, so other requests can be made in
   * between.
   */
  listInSlices(
    request: (to: Message, flags: number) => void,
    to: Message,
    visit: VisitMessage,
    attempts?: number,
  ): Generator<undefined, Outcome> {
    to.clear()
    request(to, DUMP)
    return listInSlices(this.#netlink, to, visit, attempts)
  }

  /** Does the same as `list` for a request with a single answer. The acknowledgement ends it. */
  ask(request: (to: Message, flags: number) => void, to: Message, visit: VisitMessage): boolean {
    to.clear()
    request(to, ACK)
    return this.#exchange(to, visit) === undefined
  }

  /** Returns a socket that receives what other processes change in tables. The caller closes it. */
  watch(): number {
    const fd = open(this.#netlink)
    const result = this.#netlink.nlWatch(fd, this.#now, this.#later)
    if (result >= 0) return fd
    this.#netlink.nlClose(fd)
    throw unavailable('watch nftables rules', result)
  }

  close(): void {
    this.#netlink.nlEnd(this.#worker)
    this.#netlink.nlClose(this.#now)
    this.#netlink.nlClose(this.#later)
  }

  #exchange(to: Message, visit: VisitMessage): Outcome {
    for (let attempt = 1; ; attempt++) {
      const parts: Uint8Array[] = []
      const outcome = this.#read(to, parts)
      if (outcome === 'interrupted' && attempt < ATTEMPTS) continue
      if (outcome !== undefined && outcome !== 'interrupted') return outcome
      for (const part of parts) visitPart(part, visit)
      return undefined
    }
  }

  #read(to: Message, into: Uint8Array[]): Outcome {
    const sent = this.#netlink.nlSend(this.#now, to.octets, to.size)
    if (sent < 0) return errnoName(sent)
    let outcome: Outcome
    for (let isDone = false; !isDone;) {
      const got = this.#netlink.nlReceive(this.#now, this.#received, 1)
      if (got < 0) return errnoName(got)
      const end = endOfPart(this.#received, got)
      outcome = end.outcome ?? outcome
      isDone = end.isLast
      if (end.size > 0) into.push(this.#received.slice(0, end.size))
    }
    return outcome
  }

  /** Returns undefined if no message was refused, else the first errno name. */
  #outcome(count: number): Outcome {
    if (count < 0) return errnoName(count)
    for (let i = 0; i < count; i++) {
      const errno = this.#results[i * 2 + 1]!
      if (errno !== 0) return errnoName(errno)
    }
    return count === 0 ? 'EIO' : undefined
  }
}

function open(netlink: NetlinkAddon): number {
  const fd = netlink.nlOpen(BUFFER)
  if (fd < 0) throw unavailable('open a netlink socket of netfilter', fd)
  return fd
}

export function unavailable(what: string, errno: number | string): UnavailableError {
  const name = typeof errno === 'number' ? errnoName(errno) : errno
  return new UnavailableError(`Cannot ${what}: ${name}: ${REMEDY}`)
}
