// Prefixes writes and reads the entries of the IPCache in the kernel. Whole addresses are in a hash (ng_hosts), because writing a hash costs
// a third of writing a trie. Shorter prefixes are in a trie (ng_ipcache). The programs look into the hash first.
//
// A whole address in the trie is a stray: layout 3 had all entries there, and both layouts use the same trie. The programs find a stray
// if the hash has no entry for the address. So a read returns such strays, and a removal removes strays too.

import { errnoName } from '../../../native/native.ts'
import type { CommitFailure } from '../../entries.ts'
import { PREFIX_KEY_SIZE, PREFIX_VALUE_SIZE, type PrefixBatch } from '../../prefix-batch.ts'
import type { KernelMap, KernelMaps, Refused } from './kernel-map.ts'

const E2BIG = 7

export class Prefixes {
  readonly hosts: KernelMap
  readonly trie: KernelMap
  /** True if the trie can have strays. */
  #hasStrays = false

  constructor({ ng_hosts: hosts, ng_ipcache: trie }: KernelMaps) {
    this.hosts = hosts
    this.trie = trie
  }

  upsert(batch: PrefixBatch, failures: CommitFailure[]): void {
    const { keys, values } = batch
    for (let from = 0, end = 0; from < batch.count; from = end) {
      end = endOfRun(batch, from)
      const map = batch.isAddress(from) ? this.hosts : this.trie
      const runKeys = keys.subarray(from * PREFIX_KEY_SIZE)
      const runValues = values.subarray(from * PREFIX_VALUE_SIZE)
      map.update(runKeys, runValues, end - from, refusal('upsert', from, failures))
    }
  }

  remove(batch: PrefixBatch, failures: CommitFailure[]): void {
    const { keys } = batch
    for (let from = 0, end = 0; from < batch.count; from = end) {
      end = endOfRun(batch, from)
      const isAddress = batch.isAddress(from)
      const runKeys = keys.subarray(from * PREFIX_KEY_SIZE)
      const refused = refusal('remove', from, failures)
      // A stray goes first: the programs would find it if the hash had no entry.
      if (!isAddress || this.#hasStrays) this.trie.remove(runKeys, end - from, refused)
      if (isAddress) this.hosts.remove(runKeys, end - from, refused)
    }
  }

  /** Returns the entries in force, from all entries of both maps. Both batches belong to this call. */
  merge(hosts: PrefixBatch, trie: PrefixBatch): PrefixBatch {
    const isEmpty = hosts.count === 0
    this.#hasStrays = false
    for (let i = 0; i < trie.count; i++) {
      if (trie.isAddress(i)) {
        this.#hasStrays = true
        if (!isEmpty && this.hosts.get(trie.key(i)) !== undefined) continue
      }
      hosts.addFrom(trie, i)
    }
    return hosts
  }
}

/** Returns the end of the entries from `from` on that belong into the same map. */
function endOfRun(batch: PrefixBatch, from: number): number {
  const isAddress = batch.isAddress(from)
  let end = from + 1
  while (end < batch.count && batch.isAddress(end) === isAddress) end++
  return end
}

function refusal(
  action: CommitFailure['action'],
  from: number,
  failures: CommitFailure[],
): Refused {
  return (index, errno) => {
    // Of a full map, a hash reports E2BIG and a trie ENOSPC.
    const code = errno === E2BIG ? 'ENOSPC' : errnoName(errno)
    failures.push({ section: 'prefix', action, index: from + index, code })
  }
}
