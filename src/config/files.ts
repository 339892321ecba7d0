// Finds and reads the files of a configured path. A path is one file, or a folder with all *.yaml, *.yml, *.json and *.allow files in the
// folder and in the folders below. Names that begin with a dot are left out, so that the files of a mounted ConfigMap, which are also in
// `..data`, are found once.

import { isAscii } from 'node:buffer'
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  type Dirent,
} from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import type { Fault } from '../core/errors.ts'

/** How deep folders below a configured path are read. This bound also ends a circle of links. */
export const FOLDER_DEPTH_MAX = 16

/** The number of files and folders below a path that are looked at. The path can be /, and links can multiply entries. */
export const FOLDER_ENTRIES_MAX = 100_000

export interface PolicyFiles {
  /** The files, in an order that depends on their names only. */
  readonly files: readonly string[]
  readonly faults: readonly Fault[]
  /** Paths that could not be looked at. The given path is in the list when it does not exist. */
  readonly unread: readonly string[]
}

const POLICY_FILE = /\.(ya?ml|json|allow)$/

/** Returns true if a file with this name, in a folder of policies, is read. */
export function isPolicyFile(path: string): boolean {
  return POLICY_FILE.test(path)
}

/** Finds the files of one path. A path that cannot be read is a fault. */
export function findPolicyFiles(path: string): PolicyFiles {
  const files: string[] = []
  const faults: Fault[] = []
  const unread: string[] = []
  let seen = 0
  const visit = (at: string, depth: number): void => {
    if (seen > FOLDER_ENTRIES_MAX) return
    try {
      if (!statSync(at).isDirectory()) {
        files.push(at)
        return
      }
      if (depth > FOLDER_DEPTH_MAX) {
        faults.push(faultOf(at, `found folders deeper than ${FOLDER_DEPTH_MAX}`))
        return
      }
      const entries = readdirSync(at, { withFileTypes: true })
      for (const entry of entries.sort(byName)) visitEntry(join(at, entry.name), entry, depth)
    } catch (error) {
      faults.push(faultOf(at, `cannot read: ${reasonOf(error)}`))
      unread.push(at)
    }
  }
  const visitEntry = (at: string, entry: Dirent, depth: number): void => {
    const { name } = entry
    if (seen++ > FOLDER_ENTRIES_MAX) return
    if (name.startsWith('.')) return
    const isPolicy = isPolicyFile(name)
    // The type of a link's target is looked up, and so is the type of an entry whose type the file system does not report.
    if (entry.isFile() && isPolicy) files.push(at)
    else if (isPolicy || (!entry.isFile() && isFolder(at))) visit(at, depth + 1)
  }
  visit(path, 0)
  if (seen > FOLDER_ENTRIES_MAX) {
    const found = `found more than ${FOLDER_ENTRIES_MAX} files and folders`
    const fault = faultOf(path, `${found}, expected a folder of policies`)
    return { files: [], faults: [fault], unread: [path] }
  }
  return { files, faults, unread }
}

function byName(a: Dirent, b: Dirent): number {
  return a.name < b.name ? -1 : 1
}

/** Returns true for a folder, and for a path that cannot be looked at. The visit of such a path reports the reason. */
function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
  } catch {
    return true
  }
}

/** True if both paths lead to the same file, such as one network namespace by its name and by a process. */
export function isSameFile(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }))
  return a !== undefined && a.ino === b?.ino && a.dev === b.dev
}

/** Resolves a path of a configuration file. A relative path starts at the folder of that file. */
export function pathFrom(file: string, path: string): string {
  return isAbsolute(path) ? path : join(dirname(file), path)
}

export type TextResult =
  | { readonly kind: 'ok'; readonly text: string }
  | { readonly kind: 'bad'; readonly fault: Fault }

/** Reads a file as UTF-8. Octets that are not UTF-8 are a fault, and are never replaced. */
export function readTextFile(file: string): TextResult {
  try {
    const octets = readRegularFile(file)
    // Most files are ASCII, which needs no decoding.
    if (isAscii(octets)) return { kind: 'ok', text: octets.toString('latin1') }
    return { kind: 'ok', text: new TextDecoder('utf-8', { fatal: true }).decode(octets) }
  } catch (error) {
    return { kind: 'bad', fault: faultOf(file, `cannot read: ${reasonOf(error)}`) }
  }
}

/** The octets of a regular file. Throws for anything else: reading a pipe would wait for a writer, and reading a device may never end. */
function readRegularFile(file: string): Buffer {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (!fstatSync(descriptor).isFile()) throw new Error('it is no regular file')
    return readFileSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** The reason of a system error without the path, because the fault names the path already. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message.replace(/, \w+( '.*')?$/, '')
}

function faultOf(file: string, message: string): Fault {
  return { position: { file, line: 1, column: 1 }, message }
}
