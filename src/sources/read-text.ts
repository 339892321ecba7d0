// A file's text, or the fault that it can't be read: an unreadable file is never an empty one.

import { readFileSync } from 'node:fs'
import type { Fault } from '../core/errors.ts'

export function readText(path: string): string | Fault {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { position: { file: path, line: 1, column: 1 }, message: `cannot read: ${reason}` }
  }
}
