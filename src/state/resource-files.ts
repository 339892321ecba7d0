// One file of resources on the disk: read as JSON values, written as lines. It is written beside, synced, renamed, and the
// folder synced: a crash leaves the old one or the new one.
//
//   { "version": 1, "resources": [ one a line ] }

import { readdirSync, readFileSync, type Dirent } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemCodeOf } from '../core/errors.ts'
import { isMapping } from '../documents/source-document.ts'

const VERSION = 1

/** What is in a folder; nothing when there is none. Throws when it cannot be read. */
export function entriesIn(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** The resources of a file of this version; undefined when it is something else. */
export function readResources(path: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!isMapping(value) || value['version'] !== VERSION) return undefined
    const { resources } = value
    return Array.isArray(resources) ? resources : undefined
  } catch {
    return undefined
  }
}

/** When the disk has them; without any there is no file. */
export async function writeResources(path: string, lines: readonly string[]): Promise<void> {
  if (lines.length === 0) await rm(path, { force: true })
  else {
    const text = `{"version":${VERSION},"resources":[\n${lines.join(',\n')}\n]}\n`
    await writeSynced(`${path}.new`, text)
    await rename(`${path}.new`, path)
  }
  await syncFolder(dirname(path))
}

async function writeSynced(path: string, text: string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
