// Which files the configured paths name now, and what each looks like. A folder stands for the files in it
// that end in one of the given ways, hidden ones left out (a ConfigMap's `..data` among them); links are
// followed, so a swapped link shows as a changed file.

import { readdirSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { Fault } from '../core/errors.ts'
import type { PlacedPath } from '../config/config.ts'
import type { FileSighting } from './settled-files.ts'

export const YAML_ENDINGS: readonly string[] = ['.yaml', '.yml', '.json']

/** The files that are there. Unreadable and vanished ones are left out. */
export function scanFiles(
  paths: readonly PlacedPath[],
  endings: readonly string[],
): ReadonlyMap<string, FileSighting> {
  const sightings = new Map<string, FileSighting>()
  for (const { path } of paths) {
    for (const file of filesOf(path, endings)) {
      const sighting = sightingOf(file)
      if (sighting !== undefined) sightings.set(file, sighting)
    }
  }
  return sightings
}

/** A fault for each configured path that is not there: an error at start, not an empty policy. */
export function missingPaths(paths: readonly PlacedPath[]): readonly Fault[] {
  return paths
    .filter(({ path }) => statSync(path, { throwIfNoEntry: false }) === undefined)
    .map(({ path, position }) => ({
      position,
      message: `found no file or folder ${path}, expected one (paths are relative to the working directory)`,
    }))
}

function filesOf(path: string, endings: readonly string[]): readonly string[] {
  try {
    if (!statSync(path).isDirectory()) return [path]
    return readdirSync(path)
      .filter((name) => !name.startsWith('.') && endings.includes(extname(name)))
      .sort()
      .map((name) => join(path, name))
  } catch {
    return []
  }
}

function sightingOf(file: string): FileSighting | undefined {
  try {
    const { ino, size, mtimeMs, dev, mode } = statSync(file)
    return { signature: `${dev}:${ino}:${size}:${mtimeMs}:${mode}`, empty: size === 0 }
  } catch {
    return undefined
  }
}
