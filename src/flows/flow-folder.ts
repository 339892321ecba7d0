// Lists and reads the folder of kept flows. FlowFiles writes the folder; the admin API and the command line read it, also during a write.

import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCodeOf } from '../core/errors.ts'

/** The folder's name under the state folder. */
export const FLOW_FOLDER = 'flows'
/** The longest time from the first flow that a line counts until the line is due. */
export const KEPT_SPAN_MS = 3_600_000
const NAME = /^flows-([0-9]{10})\.jsonl$/

export interface FlowFile {
  readonly name: string
  /** A younger file has a greater number. */
  readonly number: number
  octets: number
  /** Time of the last write, in wall-clock milliseconds. */
  readonly written: number
}

export function flowFileName(number: number): string {
  return `flows-${String(number).padStart(10, '0')}.jsonl`
}

/** Returns the files of flows, oldest first. Files with other names are left out. */
export async function listFlowFiles(folder: string): Promise<FlowFile[]> {
  const files: FlowFile[] = []
  for (const name of (await readdir(folder)).toSorted()) {
    const number = Number(NAME.exec(name)?.[1] ?? 0)
    if (number === 0) continue
    const found = await stat(join(folder, name)).catch(() => undefined)
    if (found !== undefined)
      files.push({ name, number, octets: found.size, written: found.mtimeMs })
  }
  return files
}

/** Yields the text of all files in pieces, oldest file first. A line that a crash cut short is left out. */
export async function* readFlowFolder(folder: string): AsyncIterable<string> {
  const files = await listFlowFiles(folder).catch(() => [])
  for (const { name } of files) {
    let rest = ''
    try {
      for await (const piece of createReadStream(join(folder, name), 'utf8')) {
        const text = rest + String(piece)
        const end = text.lastIndexOf('\n') + 1
        rest = text.slice(end)
        if (end > 0) yield text.slice(0, end)
      }
    } catch (error) {
      // FlowFiles removed this file after the listing, because the file was the oldest.
      if (systemCodeOf(error) !== 'ENOENT') throw error
    }
  }
}
