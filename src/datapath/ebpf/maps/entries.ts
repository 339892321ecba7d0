// This file writes the policy entries and prefixes of a commit into the kernel's maps. Each entry that the kernel refused is
// reported with its position and errno. All other entries are in force.

import { errnoName } from '../../../native/native.ts'
import type { ChangeSection, CommitFailure, PolicyEntry, PolicyKey } from '../../entries.ts'
import type { PrefixBatch } from '../../prefix-batch.ts'
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
  map.update(keys, values, entries.length, refusal('policy', 'upsert', failures))
}

export function removePolicy(
  { ng_policy: map }: KernelMaps,
  entries: readonly PolicyKey[],
  failures: CommitFailure[],
): void {
  map.remove(encodePolicyKeys(entries), entries.length, refusal('policy', 'remove', failures))
}

export function upsertPrefixes(
  { ng_ipcache: map }: KernelMaps,
  batch: PrefixBatch,
  failures: CommitFailure[],
): void {
  map.update(batch.keys, batch.values, batch.count, refusal('prefix', 'upsert', failures))
}

export function removePrefixes(
  { ng_ipcache: map }: KernelMaps,
  batch: PrefixBatch,
  failures: CommitFailure[],
): void {
  map.remove(batch.keys, batch.count, refusal('prefix', 'remove', failures))
}

function encodePolicyKeys(entries: readonly PolicyKey[]): Uint8Array {
  const keys = new Uint8Array(entries.length * MAP_SHAPES.ng_policy.key)
  entries.forEach((entry, i) => encodePolicyKey(entry, keys, i * MAP_SHAPES.ng_policy.key))
  return keys
}

function refusal(
  section: ChangeSection,
  action: 'upsert' | 'remove',
  failures: CommitFailure[],
): (index: number, errno: number) => void {
  return (index, errno) => failures.push({ section, action, index, code: errnoName(errno) })
}
