// A FileView says how the files of the command differ from the caller's: hidden paths, a read-only file system, a `/tmp` of its own.
// `fileViewFault` finds a view that the launcher could not make, before anything starts.

import { realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

export interface FileView {
  /** Absolute paths without symbolic links. The command sees an empty file or an empty folder there. */
  readonly hidden: readonly string[]
  readonly isReadOnly: boolean
  readonly hasPrivateTmp: boolean
  /** Files that the command can read and cannot write. */
  readonly locked: readonly string[]
}

/** Folders for temporary files, which `--private-tmp` replaces by empty ones. */
export const TMP_FOLDERS: readonly string[] = [resolve('/tmp'), resolve('/var/tmp')]

/** Returns the path that a `--hide` means, or undefined if it does not exist. */
export function hiddenPath(text: string): string | undefined {
  try {
    return realpathSync(text)
  } catch {
    return undefined
  }
}

/** Returns why the command would have no working folder, or undefined. `folder`: the working folder. */
export function fileViewFault(view: FileView, folder: string): string | undefined {
  const hidden = view.hidden.find((each) => isIn(folder, each))
  if (hidden !== undefined) return `--hide ${hidden}: the working folder is in it`
  const tmp = view.hasPrivateTmp ? TMP_FOLDERS.find((each) => isIn(folder, each)) : undefined
  return tmp === undefined ? undefined : `--private-tmp: the working folder is in ${tmp}`
}

function isIn(folder: string, outer: string): boolean {
  return folder === outer || (dirname(folder) !== folder && isIn(dirname(folder), outer))
}
