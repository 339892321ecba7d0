// Where changes of files and folders must be listened for: in the folders themselves, in those below them, and, by name, in
// every folder in which something on the way is a link or could be put in its place. One look at each part of a path.

import { lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'

/** All that happens in the folder, or what happens to entries of these names. */
export type Heard = ReadonlySet<string> | 'all'

/** Folders that are listened to; more than that is nobody's set of policies. */
const PLACES_MAX = 256
/** Links on the way; circles end there. */
const LINKS_MAX = 32

/** Folders, and what of them is heard; undefined when there are too many. */
export function heardPlaces(paths: Iterable<string>): ReadonlyMap<string, Heard> | undefined {
  const places = new Places()
  for (const path of paths) places.add(resolve(path), LINKS_MAX)
  return places.found.size > PLACES_MAX ? undefined : places.found
}

class Places {
  readonly found = new Map<string, Set<string> | 'all'>()

  /** An absolute path; `links` more may be followed. */
  add(path: string, links: number): void {
    const parts = path.split(sep).filter(Boolean)
    let at: string = sep
    for (const [i, part] of parts.entries()) {
      const next = join(at, part)
      const stats = statsOf(next)
      const isLast = i === parts.length - 1
      if (isLast || stats === undefined || stats.isSymbolicLink()) this.#hearName(at, part)
      if (stats === undefined) return
      if (stats.isSymbolicLink()) {
        const target = targetOf(next)
        if (target !== undefined && links > 0)
          this.add(join(target, ...parts.slice(i + 1)), links - 1)
        return
      }
      at = next
    }
    if (statsOf(at)?.isDirectory() === true) this.#hearAll(at, links)
  }

  #hearName(folder: string, name: string): void {
    const heard = this.found.get(folder)
    if (heard === undefined) this.found.set(folder, new Set([name]))
    else if (heard !== 'all') heard.add(name)
  }

  /** A folder, those below, and where links in them lead. */
  #hearAll(folder: string, links: number): void {
    if (this.found.get(folder) === 'all' || this.found.size > PLACES_MAX) return
    this.found.set(folder, 'all')
    for (const entry of readOrNone(folder)) {
      if (entry.isDirectory() && !entry.name.startsWith('.'))
        this.#hearAll(join(folder, entry.name), links)
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

function readOrNone(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
