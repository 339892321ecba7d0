// `openReport` opens the target of `exec --report FILE|FD`. It is opened before the command starts, so that a report which cannot be written
// stops the run at once. A file stays empty if the command did not run.

import {
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs'
import { messageOf, UnavailableError } from '../core/errors.ts'

export interface ReportTarget {
  /** Writes the report, and closes a file. Throws UnavailableError if the report cannot be written. */
  write(report: unknown): void
}

/** The bits of an open file's flags that say how it is used, and their value for a file that can only be read (fcntl.h). */
const ACCESS_MODE = 3
const READ_ONLY = 0
const FIRST = 3

/** `target`: a path, or the number of an open descriptor. Throws UnavailableError. */
export function openReport(target: string): ReportTarget {
  const isDescriptor = /^[0-9]{1,6}$/.test(target)
  if (isDescriptor && !isPassed(target)) {
    throw new UnavailableError(`Cannot write the report: descriptor ${target} is not open`)
  }
  const fd = isDescriptor ? Number(target) : attempt(() => openSync(target, 'w'))
  return {
    write: (report) => {
      attempt(() => writeFileSync(fd, `${JSON.stringify(report)}\n`))
      if (!isDescriptor) closeSync(fd)
    },
  }
}

/** Returns true for a descriptor that the caller passed for writing. Node.js has pipes of its own, with both ends in this process. */
function isPassed(descriptor: string): boolean {
  try {
    const stats = fstatSync(Number(descriptor))
    const isKnown =
      stats.isFile() || stats.isFIFO() || stats.isSocket() || stats.isCharacterDevice()
    const info = readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8')
    const flags = parseInt(/^flags:\s*([0-7]+)$/m.exec(info)?.[1] ?? '0', 8)
    const isOwn = stats.isFIFO() && endsHere(descriptor) > 1
    return isKnown && !isOwn && (flags & ACCESS_MODE) !== READ_ONLY
  } catch {
    return false
  }
}

/** Returns how many descriptors of this process, without standard input and output, are ends of the same pipe. */
function endsHere(descriptor: string): number {
  const folder = '/proc/self/fd'
  const pipe = readlinkSync(`${folder}/${descriptor}`)
  return readdirSync(folder).filter((each) => {
    try {
      return Number(each) >= FIRST && readlinkSync(`${folder}/${each}`) === pipe
    } catch {
      return false
    }
  }).length
}

function attempt<Value>(run: () => Value): Value {
  try {
    return run()
  } catch (error) {
    throw new UnavailableError(`Cannot write the report: ${messageOf(error)}: see --report`)
  }
}
