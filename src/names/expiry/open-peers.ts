// OpenPeers holds each (endpoint, address) for which the last look at the datapath's connections found an open connection. A look calls
// `note` for each open connection, and then `end` for each open peer that it did not find again. A peer has one row, however many names
// lead to the address. The typed arrays need 24 octets per row. An endpoint can have connections to addresses that only other endpoints
// learned, so `limits.pairs` does not bound the rows.

import { int32Column, uint8Column } from '../../core/tables/columns.ts'
import { HashIndex, type RowHasher } from '../../core/tables/hash-index.ts'
import { hashPair } from '../../core/tables/keyed-hash.ts'
import { Slots } from '../../core/tables/slots.ts'

export class OpenPeers implements RowHasher {
  readonly slots: Slots
  readonly endpoint: Int32Array
  /** Row of the address in the IPCache. If the IPCache has given the row to another address, the next look corrects the peer. */
  readonly prefix: Int32Array
  readonly #seen: Uint8Array
  readonly #index: HashIndex

  constructor({ capacity }: { readonly capacity: number }) {
    this.slots = new Slots(capacity)
    this.endpoint = int32Column(capacity + 1)
    this.prefix = int32Column(capacity + 1)
    this.#seen = uint8Column(capacity + 1)
    this.#index = new HashIndex(capacity, this)
  }

  has(endpoint: number, prefix: number): boolean {
    return this.slots.used > 0 && this.#find(endpoint, prefix) !== 0
  }

  /**
   * Notes that look number `look` (1..255) found a connection. Returns `known` if the peer is in the table, `new` if `note` added it, and
   * `full` if there is no row for it.
   */
  note(endpoint: number, prefix: number, look: number): 'new' | 'known' | 'full' {
    const known = this.#find(endpoint, prefix)
    const row = known === 0 ? this.slots.take() : known
    if (row === 0) return 'full'
    this.#seen[row] = look
    if (known !== 0) return 'known'
    this.endpoint[row] = endpoint
    this.prefix[row] = prefix
    this.#index.insert(hashPair(endpoint, prefix), row)
    return 'new'
  }

  /** Returns true if the row has a peer that look number `look` did not find. */
  isOver(row: number, look: number): boolean {
    return this.prefix[row] !== 0 && this.#seen[row] !== look
  }

  end(row: number): void {
    this.#index.remove(row)
    this.prefix[row] = 0
    this.slots.free(row)
  }

  hashOfRow(row: number): number {
    return hashPair(this.endpoint[row]!, this.prefix[row]!)
  }

  #find(endpoint: number, prefix: number): number {
    const hash = hashPair(endpoint, prefix)
    for (let at = this.#index.start(hash); ; at = this.#index.next(at, hash)) {
      const row = this.#index.row(at)
      if (row === 0 || (this.prefix[row] === prefix && this.endpoint[row] === endpoint)) return row
    }
  }
}
