// Where the daemon of a config file has its pins, noted for `bin/namegate datapath mode`: break glass then
// needs neither Node nor YAML to find them. One small file for each config file, named by the hash of its
// path; a note that is out of date names pins that are gone, and then nothing happens.

import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** As in bin/namegate. */
const FOLDER = '/run/namegate'

/** The note of a config file. */
export function pinNoteFile(configFile: string): string {
  const name = createHash('sha256').update(realpathSync(configFile)).digest('hex')
  return join(FOLDER, `${name}.pins`)
}

/** The folder that the last daemon run with `configFile` noted; undefined when none did, or nobody can read it. */
export function readNotedPins(configFile: string): string | undefined {
  try {
    return readFileSync(pinNoteFile(configFile), 'utf8').trim()
  } catch {
    return undefined
  }
}

/** Notes that the daemon run with `configFile` has its maps pinned in `folder`. */
export function notePins(configFile: string, folder: string): void {
  const file = pinNoteFile(configFile)
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(`${file}.new`, `${folder}\n`)
  renameSync(`${file}.new`, file)
}
