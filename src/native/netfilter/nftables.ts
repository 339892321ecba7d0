// This file declares the functions of nftables.c: netlink sockets of netfilter, a thread that applies one batch at a time, and a
// thread that reads a listing. src/datapath/nftables/ encodes and reads the octets. Negative numbers are errno values.

/** -EAGAIN: the result is not there yet. */
export const NOT_YET = -11

export interface NetlinkAddon {
  /** Opens a socket with buffers of about `bufferSize` octets. */
  nlOpen(bufferSize: number): number
  /** Most octets of one batch. */
  nlRoom(fd: number): number
  nlClose(fd: number): number
  /**
   * Sends one or more batches, each after the kernel has applied the batch before. Writes pairs (sequence, errno) to `results`
   * and returns their number.
   */
  nlRequest(fd: number, octets: Uint8Array, size: number, results: Uint32Array): number
  nlSend(fd: number, octets: Uint8Array, size: number): number
  /** Returns the octets of messages. With `wait` 0 it returns -EAGAIN if there are none. */
  nlReceive(fd: number, into: Uint8Array, wait: 0 | 1): number
  /** Starts a thread for batches. The event loop calls `onDone` after each batch. */
  nlWorker(fd: number, onDone: () => void): object | number
  /** Copies the same octets as `nlRequest` and lets the thread apply them. Returns -EBUSY while the thread has a batch. */
  nlSubmit(worker: object, octets: Uint8Array, size: number): number
  /** Returns results as `nlRequest` does. If `wait` is 0, it returns -EAGAIN while the batch is running. */
  nlTake(worker: object, results: Uint32Array, wait: 0 | 1): number
  /** Waits for the running batch and ends the thread. Call it exactly once. */
  nlEnd(worker: object): number
  /** Starts a thread that requests a listing, on a socket of its own. */
  nlReader(octets: Uint8Array, size: number): object | number
  /** Returns the octets of the next part (at most 64 KiB), 0 after the last part, or -EAGAIN if none arrives within `waitMs`. */
  nlPart(reader: object, into: Uint8Array, waitMs: number): number
  /** Ends the thread. Call it exactly once. */
  nlReaderEnd(reader: object): number
  /** Makes `fd` receive changes of tables, except the changes that were sent over the sockets `own` and `other`. */
  nlWatch(fd: number, own: number, other: number): number
  /**
   * Returns the octets of messages about tables of this name, or 0. -ENOBUFS: some messages were lost. `into` has at least 32
   * KiB.
   */
  nlChanges(fd: number, table: string, into: Uint8Array): number
}
