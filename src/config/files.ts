// The files of a configured path: itself, or every *.yaml, *.yml, *.json and *.allow in a folder and the folders below. Names
// that begin with a dot are left out, so that a mounted ConfigMap (`..data`) counts once. `readTextFile` reads such files.

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

/** Deepest folder below a configured path; links that lead in circles end there. */
export const FOLDER_DEPTH_MAX = 16

/** The most files and folders that are looked at below a path: the path may be /, and links multiply entries. */
export const FOLDER_ENTRIES_MAX = 100_000

export interface PolicyFiles {
  /** In a fixed order. */
  readonly files: readonly string[]
  readonly faults: readonly Fault[]
  /** Paths that could not be looked at, the given one with them when it isn't there. */
  readonly unread: readonly string[]
}

const POLICY_FILE = /\.(ya?ml|json|allow)$/

/** Whether a folder of policies counts a file of this name. */
export function isPolicyFile(path: string): boolean {
  return POLICY_FILE.test(path)
}

/** The files of one path; a path that can't be read is a fault. */
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
    // What a link leads to, or nothing says of itself, is looked at.
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

/** What can't be looked at counts as one: visiting it says why. */
function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
  } catch {
    return true
  }
}

/** A path as a configuration means it: relative to the folder of that file, or absolute. */
export function pathFrom(file: string, path: string): string {
  return isAbsolute(path) ? path : join(dirname(file), path)
}

export type TextResult =
  { readonly kind: 'ok'; readonly text: string } | { readonly kind: 'bad'; readonly fault: Fault }

/** Reads a file as UTF-8; octets that aren't are a fault, never silently replaced. */
export function readTextFile(file: string): TextResult {
  try {
    const octets = readRegularFile(file)
    // Most are ASCII, which needs no decoding.
    if (isAscii(octets)) return { kind: 'ok', text: octets.toString('latin1') }
    return { kind: 'ok', text: new TextDecoder('utf-8', { fatal: true }).decode(octets) }
  } catch (error) {
    return { kind: 'bad', fault: faultOf(file, `cannot read: ${reasonOf(error)}`) }
  }
}

/** The octets of a file. Throws for a pipe, which would wait for a writer, and for what never ends. */
function readRegularFile(file: string): Buffer {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (!fstatSync(descriptor).isFile()) throw new Error('it is no regular file')
    return readFileSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** The system's own words without the path, which stands before them already. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message.replace(/, \w+( '.*')?$/, '')
}

function faultOf(file: string, message: string): Fault {
  return { position: { file, line: 1, column: 1 }, message }
}
