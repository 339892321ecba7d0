// What the files that the configured paths name look like now. Which files those are is decided in one place
// (config/files.ts), so that `policy check` and the daemon never see different ones. Links are followed, so
// a swapped link shows as a changed file.

import { statSync } from 'node:fs'
import type { Fault } from '../core/errors.ts'
import type { PlacedPath } from '../config/config.ts'
import { findPolicyFiles } from '../config/files.ts'
import type { FileSighting } from './settled-files.ts'

/** The files that are there. Unreadable and vanished ones are left out. */
export function scanFiles(paths: readonly PlacedPath[]): ReadonlyMap<string, FileSighting> {
  const sightings = new Map<string, FileSighting>()
  for (const { path } of paths) {
    for (const file of findPolicyFiles(path).files) {
      const sighting = sightingOf(file)
      if (sighting !== undefined) sightings.set(file, sighting)
    }
  }
  return sightings
}

/** What is wrong with the configured paths: at the start an error, not an empty policy. */
export function pathFaults(paths: readonly PlacedPath[]): readonly Fault[] {
  return paths.flatMap(({ path, position }) => {
    if (statSync(path, { throwIfNoEntry: false }) !== undefined) return findPolicyFiles(path).faults
    const where = 'paths are relative to the working directory'
    return [{ position, message: `found no file or folder ${path}, expected one (${where})` }]
  })
}

function sightingOf(file: string): FileSighting | undefined {
  try {
    const { ino, size, mtimeMs, dev, mode } = statSync(file)
    return { signature: `${dev}:${ino}:${size}:${mtimeMs}:${mode}`, empty: size === 0 }
  } catch {
    return undefined
  }
}
