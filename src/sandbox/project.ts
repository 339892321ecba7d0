// `findProject` finds the allow-list of a project: the file `.namegate.allow` in the working folder, or in a parent up to the top of the project.
// The top is the nearest folder with `.git`, or else the home folder, or else the working folder itself. The file counts only if no user
// except the caller and root can have written it. `changesOf` reports lists that appeared or changed while a command ran, because a command could write
// the list of the next run.

import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { InvalidInputError, systemCodeOf, type Fault } from '../core/errors.ts'
import { allowLines, type Allow } from '../policy/allow-line.ts'

export const PROJECT_FILE = '.namegate.allow'
/** Longer lists are refused. In octets. */
const SIZE_MAX = 1 << 20
const WRITABLE_BY_OTHERS = 0o022

export interface ProjectList {
  readonly file: string
  readonly allows: readonly Allow[]
}

/** `found`: the list. `refused`: a file that is not used, with the reason. `none`: there is no file. */
export type Project =
  | ({ readonly kind: 'found' } & ProjectList)
  | { readonly kind: 'refused'; readonly file: string; readonly reason: string }
  | { readonly kind: 'none' }

/** Where the search begins, and who asks. */
export interface ProjectPlace {
  readonly folder: string
  readonly home: string
  readonly uid: number
}

/** The nearest file decides, also if it is refused. Throws InvalidInputError if a line of the list is faulty. */
export function findProject({ folder, home, uid }: ProjectPlace): Project {
  for (const each of foldersUp(folder, home)) {
    const file = join(each, PROJECT_FILE)
    const text = readTrusted(file, uid)
    if (text === undefined) continue
    if (typeof text !== 'string') return { kind: 'refused', file, reason: text.reason }
    return { kind: 'found', file, allows: allowsOf(text, file) }
  }
  return { kind: 'none' }
}

/** Returns the folders that are searched, from the working folder to the top of the project. */
export function foldersUp(folder: string, home: string): readonly string[] {
  const all = [folder]
  for (let each = folder; dirname(each) !== each; each = dirname(each)) all.push(dirname(each))
  const top = all.findIndex((each) => exists(join(each, '.git')))
  return all.slice(0, 1 + (top >= 0 ? top : Math.max(0, all.indexOf(home))))
}

/** Returns a function that lists the project files which appeared or changed since this call. */
export function watchProjects({ folder, home }: ProjectPlace): () => readonly string[] {
  const files = foldersUp(folder, home).map((each) => join(each, PROJECT_FILE))
  const before = files.map(stampOf)
  return () => files.filter((file, i) => stampOf(file) !== before[i])
}

/** Returns the text, the reason why the file does not count, or undefined if there is no file. Does not follow a symbolic link. */
function readTrusted(file: string, uid: number): string | { readonly reason: string } | undefined {
  let fd: number
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    const code = systemCodeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    return { reason: code === 'ELOOP' ? 'it is a symbolic link' : `it cannot be read (${code})` }
  }
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile()) return { reason: 'it is not a regular file' }
    if (stats.uid !== uid && stats.uid !== 0) {
      return { reason: `it belongs to user ${stats.uid}, and only your own and root's count` }
    }
    if ((stats.mode & WRITABLE_BY_OTHERS) !== 0) {
      return { reason: `others can write it: chmod go-w ${file}` }
    }
    if (stats.size > SIZE_MAX) return { reason: 'it is longer than 1 MiB' }
    return readFileSync(fd, 'utf8')
  } finally {
    closeSync(fd)
  }
}

function allowsOf(text: string, file: string): readonly Allow[] {
  const faults: Fault[] = []
  const allows = allowLines(text).flatMap(({ line, column, read }) => {
    if (read.kind === 'ok') return [read.allow]
    faults.push({
      position: { file, line, column: column + read.column - 1 },
      message: read.reason,
    })
    return []
  })
  if (faults.length > 0) throw new InvalidInputError(faults)
  return allows
}

function exists(path: string): boolean {
  try {
    lstatSync(path)
    return true
  } catch {
    return false
  }
}

/** Text that differs if the file is another one or was written. Empty if there is no file. */
function stampOf(file: string): string {
  try {
    const { ino, size, mtimeMs, ctimeMs, mode } = lstatSync(file)
    return [ino, size, mtimeMs, ctimeMs, mode].join()
  } catch {
    return ''
  }
}
