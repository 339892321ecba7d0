// `boundSockets` finds the UNIX sockets that have a path in the file system. /proc/net/unix lists the name that each socket was bound to.
// This name can be relative to the working folder that the process had at the bind. The file can also have been renamed after the bind.
// Therefore the result contains every socket file in the folder of a bound name. A relative name is tried in the working folder of every
// process. Socket files that no process uses are found as well, which does no harm. A socket that was moved to another folder is not found.
// A socket with a relative name is not found if no visible process has the right working folder.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

export interface SocketPlaces {
  /** The text of /proc/net/unix. */
  readonly table: string
  /** Returns the working folders of all processes that this process has permission to inspect. */
  readonly workingFolders: () => readonly string[]
  /** Returns the paths of the socket files in a folder. Empty when the folder cannot be read. */
  readonly socketsIn: (folder: string) => readonly string[]
}

/** Returns the places to search on this machine. Throws the error of the system if /proc/net/unix cannot be read. */
export function placesNow(): SocketPlaces {
  return { table: readFileSync('/proc/net/unix', 'utf8'), workingFolders, socketsIn }
}

/** Returns the absolute paths of all sockets that can be found. Some of the paths may no longer exist. */
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

/** Returns the names from the eighth column, which can contain blanks. Abstract names, which begin with `@`, are left out. */
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

/** Returns an empty list for a process that has ended or belongs to another user. */
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
