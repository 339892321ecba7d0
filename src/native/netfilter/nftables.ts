// The typed face of nftables.c: netlink sockets of netfilter, and a thread that applies one batch at a time. The
// octets are encoded and read by src/datapath/nftables/. Negative numbers are errno values.

/** -EAGAIN: what was asked for is not there yet. */
export const NOT_YET = -11

export interface NetlinkAddon {
  /** A socket with buffers of about so many octets. */
  nlOpen(bufferSize: number): number
  /** Octets that one batch may have. */
  nlRoom(fd: number): number
  nlClose(fd: number): number
  /** Sends a batch, or several, each when the kernel has taken the one before, and reads what it made of them: pairs (sequence, errno) in `results`; returns how many. */
  nlRequest(fd: number, octets: Uint8Array, size: number, results: Uint32Array): number
  nlSend(fd: number, octets: Uint8Array, size: number): number
  /** Octets of messages; with `wait` 0 -EAGAIN when there are none. */
  nlReceive(fd: number, into: Uint8Array, wait: 0 | 1): number
  /** A thread for batches; `onDone` is called from the event loop after each. */
  nlWorker(fd: number, onDone: () => void): object | number
  /** Copies what `nlRequest` would take and lets the thread apply it; -EBUSY while there is one. */
  nlSubmit(worker: object, octets: Uint8Array, size: number): number
  /** Results as of `nlRequest`; -EAGAIN while the batch is under way, unless `wait` is 1. */
  nlTake(worker: object, results: Uint32Array, wait: 0 | 1): number
  /** Waits for the batch under way and ends the thread, once. */
  nlEnd(worker: object): number
  /** A thread that asks for a listing, on a socket of its own. */
  nlReader(octets: Uint8Array, size: number): object | number
  /** Octets of its next part (64 KiB at most), 0 after the last; -EAGAIN when none comes in so many milliseconds. */
  nlPart(reader: object, into: Uint8Array, waitMs: number): number
  /** Ends the thread, once. */
  nlReaderEnd(reader: object): number
  /** From now on this socket hears what others than the owners of the two others do to tables. */
  nlWatch(fd: number, own: number, other: number): number
  /** Octets of messages about tables of a name (32 KiB of room at least), 0 when there are none; -ENOBUFS when some were lost. */
  nlNews(fd: number, table: string, into: Uint8Array): number
}
