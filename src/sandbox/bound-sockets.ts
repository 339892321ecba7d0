// UNIX sockets that have a name in the file system now, by whatever name they can be reached. /proc/net/unix has the name that
// each was bound by: one that begins in the folder in which its process stood then, or one that the file has no more, as
// after `bind x.tmp; rename x`. So every socket in the folder of such a name counts, and a relative name may begin in
// the working folder of any process. A socket file that nobody serves is dead, so that more is found than is needed does no harm.
// Not found: what was moved to another folder, and names that began where no process of ours to look at stands any more.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

export interface SocketPlaces {
  /** The text of /proc/net/unix. */
  readonly table: string
  /** Where processes stand, as far as the caller may know. */
  readonly workingFolders: () => readonly string[]
  /** Paths of the sockets in a folder; none where it cannot be read. */
  readonly socketsIn: (folder: string) => readonly string[]
}

export function placesNow(): SocketPlaces {
  return { table: readFileSync('/proc/net/unix', 'utf8'), workingFolders, socketsIn }
}

export function boundSockets({ table, workingFolders, socketsIn }: SocketPlaces): Set<string> {
  const names = boundNames(table)
  const absolute = names.filter((name) => name.startsWith('/'))
  const relative = new Set(names.filter((name) => !name.startsWith('/')).map(dirname))
  const folders = new Set(absolute.map(dirname))
  if (relative.size > 0) {
    for (const base of workingFolders())
      for (const folder of relative) folders.add(resolve(base, folder))
  }
  return new Set([...absolute, ...[...folders].flatMap(socketsIn)])
}

/** Names in the file system: the eighth column, which may hold blanks. Abstract ones begin with `@`. */
export function boundNames(table: string): readonly string[] {
  return table
    .split('\n')
    .slice(1)
    .flatMap((line) => /^(?:\S+\s+){7}([^@].*)$/.exec(line)?.[1] ?? [])
}

function workingFolders(): readonly string[] {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return [...new Set(processes.flatMap((pid) => workingFolderOf(pid)))]
}

/** None where it is gone, or another user's. */
function workingFolderOf(pid: string): readonly string[] {
  try {
    return [readlinkSync(`/proc/${pid}/cwd`)]
  } catch {
    return []
  }
}

function socketsIn(folder: string): readonly string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
    return entries.filter((entry) => entry.isSocket()).map(({ name }) => join(folder, name))
  } catch {
    return []
  }
}
