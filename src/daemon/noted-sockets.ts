// Notes the admin socket of a running daemon, so that commands find the daemon from any folder. Each note is a small file, named by the
// hash of the socket's path. A note can be older than the end of its daemon, so a reader must try the socket. Without a note, commands find
// the daemon by --socket or --config.

import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'

const SUFFIX = '.socket'
/** How many notes are read. A host has a handful of daemons. */
const NOTES_MAX = 64

/** The folders of notes: of root and of services, and of the user who runs this process. The first that can be written has the note. */
function folders(): readonly string[] {
  const own = process.env['XDG_RUNTIME_DIR'] ?? ''
  return ['/run/namegate', ...(own === '' ? [] : [join(own, 'namegate')])]
}

function nameOf(socket: string): string {
  return `${createHash('sha256').update(socket).digest('hex').slice(0, 16)}${SUFFIX}`
}

/** Notes that a daemon listens at `path`. Returns a function that removes the note. If no folder can be written, there is no note. */
export function noteSocket(path: string): () => void {
  const socket = resolve(path)
  for (const folder of folders()) {
    try {
      mkdirSync(folder, { recursive: true })
      const file = join(folder, nameOf(socket))
      writeFileSync(`${file}.new`, `${socket}\n`)
      renameSync(`${file}.new`, file)
      sweep(folder)
      return () => rmSync(file, { force: true })
    } catch {
      // The next folder can perhaps be written.
    }
  }
  return () => undefined
}

/** Removes the note of a daemon that was killed, whose socket was at `path`. */
export function forgetSocket(path: string): void {
  for (const folder of folders()) rmSync(join(folder, nameOf(resolve(path))), { force: true })
}

/** Removes the notes of daemons that were killed, whose socket is gone. */
function sweep(folder: string): void {
  for (const file of notesIn(folder)) {
    const socket = readNote(file)
    if (socket !== undefined && !existsSync(socket)) rmSync(file, { force: true })
  }
}

/** Returns the noted sockets, without duplicates and in a fixed order. Some of their daemons can have ended. */
export function notedSockets(): readonly string[] {
  const files = folders().flatMap((folder) => notesIn(folder).slice(0, NOTES_MAX))
  const found = files.flatMap((file) => readNote(file) ?? [])
  return [...new Set(found)].toSorted()
}

function notesIn(folder: string): readonly string[] {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(SUFFIX))
    return names.map((name) => join(folder, name))
  } catch {
    return []
  }
}

/** Returns the path in a note. Undefined if another daemon removed the note in the meantime, or if it has no path. */
function readNote(file: string): string | undefined {
  try {
    const path = readFileSync(file, 'utf8').trim()
    return path.startsWith('/') ? path : undefined
  } catch {
    return undefined
  }
}
