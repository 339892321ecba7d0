// The packet model, which can refuse entries on request, like a kernel without room.

import type { Changes, CommitFailure, CommitResult } from '../../../src/datapath/entries.ts'
import { PrefixBatch } from '../../../src/datapath/prefix-batch.ts'
import { PacketModel } from '../../support/models/packet-model/packet-model.ts'

export type Refusal = 'nothing' | 'prefix' | 'policy'

export class ScenarioKernel extends PacketModel {
  /** The kind of entries that a commit cannot write. Removals always succeed. */
  refusal: Refusal = 'nothing'
  /** Only prefixes with these texts. If empty, all prefixes. */
  refusedPrefixes: ReadonlySet<string> = new Set()

  override commit(changes: Changes): CommitResult {
    if (this.refusal === 'nothing') return super.commit(changes)
    const policyUpserts = this.refusal === 'policy' ? [] : changes.policyUpserts
    const kept: number[] = []
    const failures: CommitFailure[] = []
    const refuse = (section: 'policy' | 'prefix', index: number): void => {
      failures.push({ section, action: 'upsert', index, code: 'ENOSPC' })
    }
    if (this.refusal === 'policy') changes.policyUpserts.forEach((_, i) => refuse('policy', i))
    const prefixUpserts = new PrefixBatch()
    const all = changes.prefixUpserts
    for (let i = 0; i < all.count; i++) {
      if (this.#refuses(all.format(i))) {
        refuse('prefix', i)
        continue
      }
      kept.push(i)
      prefixUpserts.addFrom(all, i)
    }
    for (const failure of super.commit({ ...changes, policyUpserts, prefixUpserts })) {
      const index = failure.section === 'prefix' ? (kept[failure.index] ?? 0) : failure.index
      failures.push({ ...failure, index })
    }
    return failures
  }

  #refuses(prefix: string): boolean {
    if (this.refusal !== 'prefix') return false
    return this.refusedPrefixes.size === 0 || this.refusedPrefixes.has(prefix)
  }
}
