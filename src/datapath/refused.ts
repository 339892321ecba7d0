// Lists the entries of a commit that the datapath refused.

import type { CommitFailure } from './entries.ts'

const NONE: readonly never[] = []

/** The entries of a section's list that were refused. */
export function refusedOf<T>(
  failures: readonly CommitFailure[],
  section: 'policy' | 'endpoint',
  action: 'upsert' | 'remove',
  list: readonly T[],
): readonly T[] {
  if (failures.length === 0) return NONE
  const refused: T[] = []
  for (const failure of failures) {
    const item = list[failure.index]
    const mine = failure.section === section && failure.action === action
    if (mine && item !== undefined) refused.push(item)
  }
  return refused
}
