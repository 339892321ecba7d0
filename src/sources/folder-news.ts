// News that something in a folder changed, so that files need not be looked at often while nobody touches them. A hint
// only: what changed is found by looking. Nothing is heard of links that lead elsewhere and of file systems that send
// no news, so looks go on, slowly.

import { statSync, watch, type FSWatcher } from 'node:fs'
import { dirname } from 'node:path'

export class FolderNews {
  readonly #watchers: FSWatcher[] = []
  #isDeaf = false

  /** `paths`: files and folders; of a file its folder is heard. */
  constructor(paths: Iterable<string>, onNews: () => void) {
    for (const folder of new Set([...paths].map(folderOf))) {
      try {
        const watcher = watch(folder, { persistent: false }, onNews)
        watcher.on('error', () => this.#lose(onNews))
        this.#watchers.push(watcher)
      } catch {
        this.#isDeaf = true
      }
    }
  }

  /** Whether every folder is heard. */
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

function folderOf(path: string): string {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
  return isFolder ? path : dirname(path)
}
