// Notes the pin path of a config file, and reads the note. With the note, break-glass mode (`bin/namegate datapath mode`) finds the pins
// without Node and without reading YAML. The note has the pin path of the last eBPF daemon of the config file, also after the file was
// changed. Its second line is the path of the config file, for commands that find pins and look for their configuration. Each config file
// has one small note, named by the hash of the config file's path. An outdated note has no effect, because its pins are gone. This module
// loads little, because break-glass mode uses it.

import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { pinDirectory } from '../datapath/ebpf/maps/bpffs.ts'

/** The folder of the notes. bin/namegate uses the same path. */
const FOLDER = '/run/namegate'

/** Returns the path of the note for a config file. */
export function pinNoteFile(configFile: string): string {
  const name = createHash('sha256').update(realpathSync(configFile)).digest('hex')
  return join(FOLDER, `${name}.pins`)
}

interface PinNote {
  /** The folder of the pins. */
  readonly folder: string
  readonly configFile: string
  /** When the note was written, in milliseconds. */
  readonly noted: number
}

/** Returns undefined without a readable note. */
function readNote(note: string): PinNote | undefined {
  try {
    const [folder = '', configFile = ''] = readFileSync(note, 'utf8').split('\n')
    return { folder, configFile, noted: statSync(note).mtimeMs }
  } catch {
    return undefined
  }
}

/** Returns the folder of pins that the last daemon with `configFile` noted, or undefined without a readable note. */
function readNotedPins(configFile: string): string | undefined {
  try {
    return readNote(pinNoteFile(configFile))?.folder
  } catch {
    return undefined
  }
}

/** Returns the config file whose daemon noted last that its pins are in `pinPath`. Undefined without a note, and when the file is gone. */
export function configOfPins(pinPath: string): string | undefined {
  return notesIn(FOLDER)
    .flatMap((name) => readNote(join(FOLDER, name)) ?? [])
    .filter(({ folder, configFile }) => folder === pinDirectory(pinPath) && existsSync(configFile))
    .reduce<PinNote | undefined>(
      (a, b) => (a === undefined || a.noted < b.noted ? b : a),
      undefined,
    )?.configFile
}

function notesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.pins'))
  } catch {
    return []
  }
}

/** Notes that the daemon of `configFile` pins its maps in `folder`. */
export function notePins(configFile: string, folder: string): void {
  const file = pinNoteFile(configFile)
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(`${file}.new`, `${folder}\n${realpathSync(configFile)}\n`)
  renameSync(`${file}.new`, file)
}

/** Removes the note of a config file, because its enforcement was removed. */
export function forgetPins(configFile: string): void {
  if (existsSync(configFile)) rmSync(pinNoteFile(configFile), { force: true })
}

/**
 * Returns the noted pin path of a config file. Returns undefined without a note, when the pins are gone, and when the pins have another
 * layout. The next eBPF daemon takes over or removes pins of another layout.
 */
export function notedPinPath(file: string): string | undefined {
  const folder = readNotedPins(file)
  const pinPath = folder === undefined ? undefined : dirname(folder)
  if (pinPath === undefined || pinDirectory(pinPath) !== folder) return undefined
  return hasPins(pinPath) ? pinPath : undefined
}

/** True when `pinPath` has pins that enforce policy for endpoints. */
export function hasPins(pinPath: string): boolean {
  return existsSync(join(pinDirectory(pinPath), 'ng_endpoints'))
}
