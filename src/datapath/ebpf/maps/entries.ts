// This file writes the policy entries of a commit into the kernel's map. Each entry that the kernel refused is reported with its
// position and errno. All other entries are in force.

import { errnoName } from '../../../native/native.ts'
import type { CommitFailure, PolicyEntry, PolicyKey } from '../../entries.ts'
import { encodePolicyKey, encodePolicyValue, MAP_SHAPES } from './layout.ts'
import type { KernelMaps } from './kernel-map.ts'

export function upsertPolicy(
  { ng_policy: map }: KernelMaps,
  entries: readonly PolicyEntry[],
  failures: CommitFailure[],
): void {
  const keys = encodePolicyKeys(entries)
  const values = new Uint8Array(entries.length * map.valueSize)
  entries.forEach((entry, i) => encodePolicyValue(entry, values, i * map.valueSize))
  map.update(keys, values, entries.length, refusal('upsert', failures))
}

export function removePolicy(
  { ng_policy: map }: KernelMaps,
  entries: readonly PolicyKey[],
  failures: CommitFailure[],
): void {
  map.remove(encodePolicyKeys(entries), entries.length, refusal('remove', failures))
}

function encodePolicyKeys(entries: readonly PolicyKey[]): Uint8Array {
  const keys = new Uint8Array(entries.length * MAP_SHAPES.ng_policy.key)
  entries.forEach((entry, i) => encodePolicyKey(entry, keys, i * MAP_SHAPES.ng_policy.key))
  return keys
}

function refusal(
  action: 'upsert' | 'remove',
  failures: CommitFailure[],
): (index: number, errno: number) => void {
  return (index, errno) =>
    failures.push({ section: 'policy', action, index, code: errnoName(errno) })
}
