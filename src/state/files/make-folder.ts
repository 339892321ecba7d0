// Folders of the state, with the reason of the system when they can't be made: of a disk that is read-only Node's
// `recursive` says ENOENT, whatever the kernel said.

import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemCodeOf } from '../../core/errors.ts'

/** Makes a folder and those above it where they are missing; throws the kernel's reason. */
export function makeFolder(path: string, mode?: number): void {
  try {
    mkdirSync(path, { recursive: true, mode })
  } catch (error) {
    throw systemCodeOf(error) === 'ENOENT' ? (reasonOf(path) ?? error) : error
  }
}

/** Why the topmost folder that is missing can't be made; undefined: it could, by now. */
function reasonOf(path: string): unknown {
  let missing = path
  while (!existsSync(dirname(missing))) missing = dirname(missing)
  try {
    mkdirSync(missing)
    return undefined
  } catch (error) {
    return error
  }
}
