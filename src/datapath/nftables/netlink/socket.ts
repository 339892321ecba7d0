// The two sockets of the adapter: one for what is asked and answered at once (start, dump, mode), one for commits, which a thread
// of its own applies. Every failure is an errno name; nothing throws but what cannot be opened at all.

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

/** Room for a batch of some 200,000 elements; without the right to it the kernel gives less. */
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

  /** `onDone` is called from the event loop when a submitted batch is done. */
  constructor(netlink: NetlinkAddon, onDone: () => void) {
    this.#netlink = netlink
    this.#now = open(netlink)
    this.#later = open(netlink)
    const worker = netlink.nlWorker(this.#later, onDone)
    if (typeof worker === 'number') throw unavailable('start a thread for nftables', worker)
    this.#worker = worker
  }

  /** Octets that one batch may have. */
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

  /** The outcome of the batch that was submitted; `busy` while it is under way. */
  take(wait: boolean): { readonly outcome: Outcome } | 'busy' {
    const count = this.#netlink.nlTake(this.#worker, this.#results, wait ? 1 : 0)
    if (count === NOT_YET) return 'busy'
    return { outcome: this.#outcome(count) }
  }

  /** Sends a listing's request and visits each message of the answer; false when there is nothing to list. */
  list(request: (to: Message, flags: number) => void, to: Message, visit: VisitMessage): boolean {
    to.clear()
    request(to, DUMP)
    return this.#exchange(to, visit) === undefined
  }

  /** The same with pauses while the kernel lists; what is asked meanwhile has another socket. */
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

  /** The same for a question that has one answer; the acknowledgement ends it. */
  ask(request: (to: Message, flags: number) => void, to: Message, visit: VisitMessage): boolean {
    to.clear()
    request(to, ACK)
    return this.#exchange(to, visit) === undefined
  }

  /** A socket that hears what others do to tables; whoever asks closes it. */
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

  /** Something is acknowledged when nothing is refused. */
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
