// Notes the pin path of a config file for `bin/namegate datapath mode`, so that break-glass mode needs neither Node nor YAML to
// find the pins. One small file for each config file, named by the hash of its path. An outdated note names pins that are gone,
// which has no effect.

import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** As in bin/namegate. */
const FOLDER = '/run/namegate'

/** The file of the note for a config file. */
export function pinNoteFile(configFile: string): string {
  const name = createHash('sha256').update(realpathSync(configFile)).digest('hex')
  return join(FOLDER, `${name}.pins`)
}

/** The pin path that the last daemon with `configFile` noted; undefined without a readable note. */
export function readNotedPins(configFile: string): string | undefined {
  try {
    return readFileSync(pinNoteFile(configFile), 'utf8').trim()
  } catch {
    return undefined
  }
}

/** Notes that the daemon of `configFile` pins its maps in `folder`. */
export function notePins(configFile: string, folder: string): void {
  const file = pinNoteFile(configFile)
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(`${file}.new`, `${folder}\n`)
  renameSync(`${file}.new`, file)
}
