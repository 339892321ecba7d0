// `makeFolder` makes a folder by one call of mkdir(2) for each missing part of its path.

import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemCodeOf } from '../core/errors.ts'

/**
 * Makes a folder, and the missing folders above it. Throws the kernel's error about the topmost missing folder. Node's `recursive` reports
 * ENOENT on a read-only disk, and does not return for a folder in /proc.
 */
export function makeFolder(path: string, mode?: number): void {
  const above = dirname(path)
  if (above !== path && !existsSync(above)) makeFolder(above, mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    const isThere = systemCodeOf(error) === 'EEXIST'
    if (!isThere || statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
  }
}
