// This file reads recorded flows line by line, from files, from the folder where a daemon keeps flows, or from a daemon. It collects the
// faults of all files, up to a bound. If the last line of a file is not complete, for example after a crash, the line is reported and left
// out.

import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../core/clock.ts'
import { InvalidInputError, messageOf, type Fault } from '../../core/errors.ts'
import { listFlowFiles } from '../../flows/flow-folder.ts'
import { parseFlowLine, type FlowLine } from '../../suggest/flow-line.ts'

export type GoodFlowLine = Exclude<FlowLine, { readonly kind: 'bad' }>

const FAULTS_MAX = 20
const WAIT_MS = 1000

/**
 * Reads all files, and calls `take` for each line. Returns notes about lines that were left out. Throws InvalidInputError with the faults.
 * If nothing can be read from a file for a second, for example from a pipe without a writer, calls `onWait` with the file's name. The
 * reader then continues to wait.
 */
export async function readFlowFiles(
  paths: readonly string[],
  take: (line: GoodFlowLine) => void,
  onWait: (file: string) => void,
): Promise<readonly string[]> {
  const faults: Fault[] = []
  const notes: string[] = []
  for (const path of paths) {
    for (const file of await filesOf(path, faults)) {
      const pieces = begun(createReadStream(file, 'utf8'), () => onWait(file))
      try {
        const cut = await readFlows(pieces, file, take, faults)
        if (cut !== undefined) notes.push(cut)
      } catch (error) {
        faults.push(unreadable(file, error))
      }
    }
  }
  if (faults.length > 0) throw new InvalidInputError(faults)
  return notes
}

/** Yields the same pieces. Calls `onWait` if the first piece does not arrive within a second. */
async function* begun(pieces: AsyncIterable<unknown>, onWait: () => void): AsyncIterable<unknown> {
  const timer = systemClock.after(WAIT_MS, onWait)
  try {
    for await (const piece of pieces) {
      timer.cancel()
      yield piece
    }
  } finally {
    timer.cancel()
  }
}

/** Reads one stream of lines, and adds its faults to `faults`. Returns a note if the last line is not complete. */
export async function readFlows(
  pieces: AsyncIterable<unknown>,
  file: string,
  take: (line: GoodFlowLine) => void,
  faults: Fault[],
): Promise<string | undefined> {
  let rest = ''
  let number = 0
  const read = (line: string, isLast: boolean): string | undefined => {
    number++
    if (line.trim() === '') return undefined
    const parsed = parseFlowLine(line)
    if (parsed.kind !== 'bad') take(parsed)
    else if (isLast) return `${file}:${number}: the last line is incomplete and is left out`
    else if (faults.length < FAULTS_MAX) {
      const position = { file, line: number, column: 1 }
      faults.push({ position, message: parsed.reason })
    }
    return undefined
  }
  for await (const piece of pieces) {
    const lines = (rest + String(piece)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) read(line, false)
  }
  return rest === '' ? undefined : read(rest, true)
}

/** Returns the files of a path: the path itself, or the files of flows in a folder. */
async function filesOf(path: string, faults: Fault[]): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path]
    const files = (await listFlowFiles(path)).map(({ name }) => join(path, name))
    if (files.length === 0) {
      const position = { file: path, line: 0, column: 0 }
      faults.push({ position, message: 'found no flows-*.jsonl in this folder' })
    }
    return files
  } catch (error) {
    faults.push(unreadable(path, error))
    return []
  }
}

function unreadable(file: string, error: unknown): Fault {
  const reason = messageOf(error)
  return { position: { file, line: 0, column: 0 }, message: `cannot read: ${reason}` }
}
