// findCgroups finds the cgroups of endpoints for the rules of nftables. A rule compares the ancestor of a socket's cgroup at one level with
// a set, so cgroups are grouped by level. nft(8) takes a path below /sys/fs/cgroup and writes the cgroup's number into the set. A cgroup
// that is made again has another number.

import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { UnavailableError } from '../core/errors.ts'
import { cgroupPath, findCgroupMount, type CgroupMount } from '../native/cgroup-mount.ts'

/** The cgroups at one level of the tree. The level of a child of the root is 1. */
export interface CgroupLevel {
  readonly level: number
  /** Paths below /sys/fs/cgroup, sorted. */
  readonly paths: readonly string[]
}

/** Where nft(8) looks for a cgroup. */
const NFT_ROOT = '/sys/fs/cgroup'

/**
 * Returns the cgroups that exist, by level. `cgroups`: paths inside the cgroup2 mount. Throws UnavailableError for a cgroup that no rule can
 * name.
 */
export function findCgroups(
  cgroups: readonly string[],
  mount: CgroupMount | undefined = findCgroupMount(),
): readonly CgroupLevel[] {
  const levels = new Map<number, Set<string>>()
  for (const cgroup of cgroups) {
    const place = cgroupPath(mount?.path, cgroup)
    if (mount === undefined || place.kind === 'bad' || !existsSync(place.path)) continue
    const path = relative(NFT_ROOT, place.path)
    if (path.startsWith('..')) throw unnameable(cgroup, `it is not below ${NFT_ROOT}`)
    if (!/^[^"*\p{Cc}]+$/u.test(path)) throw unnameable(cgroup, 'its name has odd characters')
    const level = depthOf(join(mount.root, relative(mount.path, place.path)))
    levels.set(level, (levels.get(level) ?? new Set()).add(path))
  }
  return [...levels]
    .toSorted(([a], [b]) => a - b)
    .map(([level, paths]) => ({ level, paths: [...paths].toSorted() }))
}

function depthOf(path: string): number {
  return path.split('/').filter((part) => part !== '').length
}

function unnameable(cgroup: string, why: string): UnavailableError {
  return new UnavailableError(
    `Cannot intercept for the cgroup ${cgroup}: no rule can name it: ${why}`,
  )
}
