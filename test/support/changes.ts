// Copies a commit so that a test can keep it: the maker of a commit reuses its lists of prefixes.

import type { Changes } from '../../src/datapath/entries.ts'
import { PrefixBatch } from '../../src/datapath/prefix-batch.ts'

export function copyChanges(changes: Changes): Changes {
  return {
    ...changes,
    prefixUpserts: copyBatch(changes.prefixUpserts),
    prefixRemovals: copyBatch(changes.prefixRemovals),
  }
}

function copyBatch(batch: PrefixBatch): PrefixBatch {
  const kept = new PrefixBatch(Math.max(1, batch.count))
  for (let i = 0; i < batch.count; i++) kept.addFrom(batch, i)
  return kept
}
