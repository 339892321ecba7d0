// Reports changes in the folders of source files, so that files that rest are looked at seldom. A report is a hint: a look finds
// what changed. Watched are configured folders, the folders below them, the targets of links, and every folder in which a part
// of the path could be swapped.

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

/** File systems that change through this kernel alone, so that it reports every change: magic numbers of statfs(2). */
const LOCAL: ReadonlySet<number> = new Set([
  0xef53, // ext
  0x01021994, // tmpfs
  0x58465342, // xfs
  0x9123683e, // btrfs
  0x2fc12fc1, // zfs
  0x794c7630, // overlay
])

/** The most folders that are watched. */
const FOLDERS_MAX = 256
/** The most links that are followed on one path, so that a circle of links ends. */
const LINKS_MAX = 32

export class FolderWatcher {
  readonly #watchers: FSWatcher[] = []
  #reportsAll = true

  /** `paths`: files and folders, whether they exist or not. */
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

  /** Whether every change is reported. */
  get reportsAll(): boolean {
    return this.#reportsAll
  }

  close(): void {
    for (const watcher of this.#watchers.splice(0)) watcher.close()
  }
}

/** Every change in a folder, or changes of the entries with these names. */
export type WatchedEntries = ReadonlySet<string> | 'all'

/** Folders to watch, and which of their entries; undefined when there are more than `FOLDERS_MAX`. */
export function watchedPaths(
  paths: Iterable<string>,
): ReadonlyMap<string, WatchedEntries> | undefined {
  const search = new FolderSearch()
  for (const path of paths) search.add(resolve(path), LINKS_MAX)
  return search.found.size > FOLDERS_MAX ? undefined : search.found
}

/** Looks at each part of a path once. */
class FolderSearch {
  readonly found = new Map<string, Set<string> | 'all'>()

  /** `path` is absolute; at most `links` links are followed. */
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
