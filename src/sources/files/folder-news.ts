// News of changes in the folders that files are in, so that files need not be looked at often while nobody touches them. A hint
// only: what changed is found by looking. Heard are the folders below as well, where links lead, and the places in which a folder or
// link on the way could be swapped. Where that is too much, or the file system tells no news, looks have to go on.

import { statfsSync, watch, type FSWatcher } from 'node:fs'
import { heardPlaces } from './heard-places.ts'

/** File systems whose every change this kernel makes and tells: magic numbers of statfs(2). */
const LOCAL: ReadonlySet<number> = new Set([
  0xef53, // ext
  0x01021994, // tmpfs
  0x58465342, // xfs
  0x9123683e, // btrfs
  0x2fc12fc1, // zfs
  0x794c7630, // overlay
])

export class FolderNews {
  readonly #watchers: FSWatcher[] = []
  #isDeaf = false

  /** `paths`: files and folders, whether there or not. */
  constructor(paths: Iterable<string>, onNews: () => void) {
    const places = heardPlaces(paths)
    if (places === undefined) this.#isDeaf = true
    for (const [folder, names] of places ?? []) {
      try {
        const watcher = watch(folder, { persistent: false }, (_event, name) => {
          if (names === 'all' || name === null || names.has(name)) onNews()
        })
        watcher.on('error', () => this.#lose(onNews))
        this.#watchers.push(watcher)
        if (!LOCAL.has(statfsSync(folder).type)) this.#isDeaf = true
      } catch {
        this.#isDeaf = true
      }
    }
  }

  /** Whether every change is heard. */
  get isHearing(): boolean {
    return !this.#isDeaf
  }

  close(): void {
    for (const watcher of this.#watchers.splice(0)) watcher.close()
  }

  #lose(onNews: () => void): void {
    this.#isDeaf = true
    onNews()
  }
}
