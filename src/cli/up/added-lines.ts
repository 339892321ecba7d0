// The lines that a user adds to the list of a running `namegate up`. Each run notes for which workload it is, where its list is and which
// lines come from --allow. The note stays if the run is killed. The next run for the same workload then finds the lines that were added.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCodeOf } from '../../core/errors.ts'
import { allowLines } from '../../policy/allow-line.ts'
import type { UpTarget } from './arguments.ts'

/** What a run notes. */
export interface RunNote {
  readonly target: UpTarget
  /** Absolute path of the allow-list. */
  readonly list: string
  /** The values of --allow. */
  readonly allows: readonly string[]
}

export interface AddedLines {
  /** Entries that are no value of --allow, without comments, each once. */
  readonly lines: readonly string[]
  /** Why other lines are left out. */
  readonly faults: readonly string[]
}

const NONE: AddedLines = { lines: [], faults: [] }
const NOTE_FILE = 'note'

/** Writes the note of a run into its folder. */
export function writeNote(folder: string, { target, list, allows }: RunNote): void {
  writeFileSync(join(folder, NOTE_FILE), [workloadOf(target), list, ...allows, ''].join('\n'))
}

/** Reads the lines that were added to the list of a killed run. There are none if that run was for another workload. */
export function addedBefore(folder: string, target: UpTarget): AddedLines {
  const note = noteIn(folder)
  return note?.workload === workloadOf(target) ? addedTo(note.list, note.allows) : NONE
}

/** Reads the note of a run. `workload`: its kind and value, such as `netns box`. Undefined if there is no note that this user can read. */
export function noteIn(
  folder: string,
): ({ readonly workload: string } & Omit<RunNote, 'target'>) | undefined {
  try {
    const lines = readFileSync(join(folder, NOTE_FILE), 'utf8').split('\n')
    const [workload = '', list = '', ...allows] = lines
    return list === '' ? undefined : { workload, list, allows }
  } catch {
    return undefined
  }
}

/** Reads the lines that were added to a list. The file may be missing. A list that cannot be read counts as a fault. */
export function addedTo(list: string, allows: readonly string[]): AddedLines {
  const given = new Set(allows)
  const read = textIn(list)
  if (read instanceof Error) return { lines: [], faults: [`the list ${list}: ${read.message}`] }
  const entries = allowLines(read).filter(({ text }) => !given.has(text))
  const lines = entries.flatMap(({ text, read }) => (read.kind === 'ok' ? [text] : []))
  const faults = entries.flatMap(({ text, read }) =>
    read.kind === 'ok' ? [] : [`${JSON.stringify(text)}: ${read.reason}`],
  )
  return { lines: [...new Set(lines)], faults }
}

/** The kind and value of a workload, such as `netns box`. */
export function workloadOf({ kind, value }: UpTarget): string {
  return `${kind} ${value}`
}

/** The text of a file, or why it cannot be read. Empty if there is no file. */
function textIn(file: string): string | Error {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')
    return isMissing ? '' : new Error(messageOf(error))
  }
}
