// Reports changes in the folders of source files, so that files which do not change are looked at seldom. A report is only a hint: a look
// at the files finds out what changed. FolderWatcher watches the configured folders, the folders below them, and the targets of links. It
// also watches every folder in which a part of a path can be swapped.

import {
  lstatSync,
  readdirSync,
  readlinkSync,
  statfsSync,
  watch,
  type FSWatcher,
  type Stats,
} from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'

/** Magic numbers (statfs(2)) of file systems that only this kernel changes, so that the kernel reports every change. */
const LOCAL: ReadonlySet<number> = new Set([
  0xef53, // ext
  0x01021994, // tmpfs
  0x58465342, // xfs
  0x9123683e, // btrfs
  0x2fc12fc1, // zfs
  0x794c7630, // overlay
])

/** How many folders are watched at most. */
const FOLDERS_MAX = 256
/** How many links are followed on one path at most, so that a circle of links ends. */
const LINKS_MAX = 32

export class FolderWatcher {
  readonly #watchers: FSWatcher[] = []
  #reportsAll = true

  /** `paths` are files and folders. They do not need to exist. */
  constructor(paths: Iterable<string>, onChange: () => void) {
    const folders = watchedPaths(paths)
    if (folders === undefined) this.#reportsAll = false
    for (const [folder, names] of folders ?? []) {
      try {
        const watcher = watch(folder, { persistent: false }, (_event, name) => {
          if (names === 'all' || name === null || names.has(name)) onChange()
        })
        watcher.on('error', () => {
          this.#reportsAll = false
          onChange()
        })
        this.#watchers.push(watcher)
        if (!LOCAL.has(statfsSync(folder).type)) this.#reportsAll = false
      } catch {
        this.#reportsAll = false
      }
    }
  }

  /** True if every change is reported. */
  get reportsAll(): boolean {
    return this.#reportsAll
  }

  close(): void {
    for (const watcher of this.#watchers.splice(0)) watcher.close()
  }
}

/** What is watched in a folder: every change, or changes of the files and folders with these names. */
export type WatchedEntries = ReadonlySet<string> | 'all'

/** The folders to watch, and the names to watch in each. Undefined when there are more than `FOLDERS_MAX`. */
export function watchedPaths(
  paths: Iterable<string>,
): ReadonlyMap<string, WatchedEntries> | undefined {
  const search = new FolderSearch()
  for (const path of paths) search.add(resolve(path), LINKS_MAX)
  return search.found.size > FOLDERS_MAX ? undefined : search.found
}

/** Finds the folders to watch. Looks at each part of a path once. */
class FolderSearch {
  readonly found = new Map<string, Set<string> | 'all'>()

  /** Adds an absolute path. Follows at most `links` links. */
  add(path: string, links: number): void {
    const parts = path.split(sep).filter(Boolean)
    let at: string = sep
    for (const [i, part] of parts.entries()) {
      const next = join(at, part)
      const stats = statsOf(next)
      const isLast = i === parts.length - 1
      if (isLast || stats === undefined || stats.isSymbolicLink()) this.#addName(at, part)
      if (stats === undefined) return
      if (stats.isSymbolicLink()) {
        const target = targetOf(next)
        if (target !== undefined && links > 0)
          this.add(join(target, ...parts.slice(i + 1)), links - 1)
        return
      }
      at = next
    }
    if (statsOf(at)?.isDirectory() === true) this.#addFolder(at, links)
  }

  #addName(folder: string, name: string): void {
    const names = this.found.get(folder)
    if (names === undefined) this.found.set(folder, new Set([name]))
    else if (names !== 'all') names.add(name)
  }

  /** Adds a folder, the folders below it, and the targets of links in it. */
  #addFolder(folder: string, links: number): void {
    if (this.found.get(folder) === 'all' || this.found.size > FOLDERS_MAX) return
    this.found.set(folder, 'all')
    for (const entry of entriesOf(folder)) {
      if (entry.isDirectory() && !entry.name.startsWith('.'))
        this.#addFolder(join(folder, entry.name), links)
      if (entry.isSymbolicLink() && links > 0) {
        const target = targetOf(join(folder, entry.name))
        if (target !== undefined) this.add(target, links - 1)
      }
    }
  }
}

function statsOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

function targetOf(link: string): string | undefined {
  try {
    return resolve(dirname(link), readlinkSync(link))
  } catch {
    return undefined
  }
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
