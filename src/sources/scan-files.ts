// What the files that the configured paths name look like now. Which files those are is decided in one place
// (config/files.ts), so that `policy check` and the daemon never see different ones. Links are followed, so
// a swapped link shows as a changed file.

import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import type { Fault } from '../core/errors.ts'
import type { PlacedPath } from '../config/config.ts'
import { findPolicyFiles } from '../config/files.ts'
import type { FileSighting, Scan } from './settled-files.ts'

/** The link that a mounted ConfigMap or Secret swaps. */
const MOUNTED_DATA = '..data'

export interface FileScan extends Scan {
  /** Whether there is no folder that nothing is known of now. */
  readonly isWhole: boolean
  /** Configured paths that are not there. */
  readonly missing: readonly string[]
}

/** The files that are there, and the folders that nothing is known of now. */
export function scanFiles(paths: readonly PlacedPath[]): FileScan {
  const files = new Map<string, FileSighting>()
  const lost: string[] = []
  const missing: string[] = []
  for (const { path } of paths) {
    const found = findPolicyFiles(path)
    lost.push(...found.unread)
    if (found.unread.includes(path) && !existsSync(path)) missing.push(path)
    for (const file of found.files) {
      const sighting = sightingOf(file)
      if (sighting !== undefined) files.set(file, sighting)
    }
  }
  const places = new Map<string, string>()
  return {
    files,
    isWhole: lost.length === 0,
    missing,
    placeOf: (folder) => {
      const place = places.get(folder) ?? placeOf(folder)
      places.set(folder, place)
      return place
    },
    isDangling: (path) => !files.has(path) && isEntry(path),
    lostFolderOf: (path) =>
      lost.length === 0 ? undefined : lost.find((folder) => path.startsWith(`${folder}${sep}`)),
  }
}

function isEntry(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

/** What is wrong with the configured paths: at the start an error, not an empty policy. */
export function pathFaults(paths: readonly PlacedPath[]): readonly Fault[] {
  return paths.flatMap(({ path, position }) => {
    if (existsSync(path)) return findPolicyFiles(path).faults
    const where = 'paths are relative to the working directory'
    return [{ position, message: `found no file or folder ${path}, expected one (${where})` }]
  })
}

/** Another text after every change of the file; undefined when there is none. */
export function signatureOf(path: string): string | undefined {
  return sightingOf(path)?.signature
}

function sightingOf(file: string): FileSighting | undefined {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(file)
    return { signature: `${dev}:${ino}:${size}:${mtimeMs}:${ctimeMs}`, empty: size === 0 }
  } catch {
    return undefined
  }
}

function placeOf(folder: string): string {
  return [() => realpathSync(folder), () => readlinkSync(join(folder, MOUNTED_DATA))]
    .map((read) => {
      try {
        return read()
      } catch {
        return ''
      }
    })
    .join('\n')
}
