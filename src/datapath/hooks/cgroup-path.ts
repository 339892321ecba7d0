// Where a configured cgroup is on this machine: paths are inside the cgroup2 mount, which is not always
// /sys/fs/cgroup (with both versions mounted it is /sys/fs/cgroup/unified).

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export type CgroupPath =
  { readonly kind: 'ok'; readonly path: string } | { readonly kind: 'bad'; readonly reason: string }

/** Mount point of the first cgroup2 file system; `mountinfo` is the text of that file of proc(5). */
export function cgroupMount(
  mountinfo = readFileSync('/proc/self/mountinfo', 'utf8'),
): string | undefined {
  for (const line of mountinfo.split('\n')) {
    const [mount, filesystem] = line.split(' - ')
    if (filesystem?.startsWith('cgroup2 ') === true) {
      return unescapeOctal(mount?.split(' ')[4] ?? '')
    }
  }
  return undefined
}

/** Spaces and the like stand as \040 in mountinfo. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  )
}

/** The folder of a cgroup; the root cgroup is refused, because everything is in it. */
export function cgroupPath(mount: string | undefined, configured: string): CgroupPath {
  const parts = configured.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.length === 0) return { kind: 'bad', reason: 'the root cgroup cannot be an endpoint' }
  if (parts.includes('..')) return { kind: 'bad', reason: `cgroup ${configured} leaves its mount` }
  if (mount === undefined) return { kind: 'bad', reason: 'no cgroup2 file system is mounted' }
  return { kind: 'ok', path: join(mount, ...parts) }
}
