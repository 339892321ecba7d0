// Finds the cgroup2 mount, and folders of cgroups in it. The mount is not always /sys/fs/cgroup: with both cgroup versions mounted it is
// /sys/fs/cgroup/unified.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export type CgroupPath =
  | { readonly kind: 'ok'; readonly path: string }
  | { readonly kind: 'bad'; readonly reason: string }

/** A mounted cgroup2 file system. */
export interface CgroupMount {
  /** The cgroup that is at the mount point, as a path in the whole tree. */
  readonly root: string
  /** The mount point. */
  readonly path: string
}

/** Returns the first cgroup2 mount. `mountinfo` is the text of that file of proc(5). */
export function findCgroupMount(
  mountinfo = readFileSync('/proc/self/mountinfo', 'utf8'),
): CgroupMount | undefined {
  for (const line of mountinfo.split('\n')) {
    const [mount, filesystem] = line.split(' - ')
    if (filesystem?.startsWith('cgroup2 ') !== true) continue
    const [, , , root = '', path = ''] = mount?.split(' ') ?? []
    return { root: unescapeOctal(root), path: unescapeOctal(path) }
  }
  return undefined
}

/** The mount point of the first cgroup2 file system. */
export function cgroupMount(mountinfo?: string): string | undefined {
  return findCgroupMount(mountinfo)?.path
}

/** mountinfo writes a space as \040, and similar characters likewise. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  )
}

/** The folder of a cgroup. The root cgroup is refused, because every process is in it. */
export function cgroupPath(mount: string | undefined, configured: string): CgroupPath {
  const parts = configured.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.length === 0) return { kind: 'bad', reason: 'the root cgroup cannot be an endpoint' }
  if (parts.includes('..')) return { kind: 'bad', reason: `cgroup ${configured} leaves its mount` }
  if (mount === undefined) return { kind: 'bad', reason: 'no cgroup2 file system is mounted' }
  return { kind: 'ok', path: join(mount, ...parts) }
}
