// `runState` runs `namegate state show|check`. The command reads a file of the state folder, without a daemon.

import { messageOf, UnavailableError, UsageError } from '../../core/errors.ts'
import { inspectFile, type Inspection } from '../../state/inspect.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { showState } from './state-show.ts'
import { cleanCell } from '../table.ts'

export function runState(read: ParsedArguments, output: CommandOutput): number {
  const [verb, file, ...rest] = read.positionals
  if ((verb !== 'show' && verb !== 'check') || file === undefined || rest.length > 0) {
    return read.wrong('state needs show or check, and one FILE')
  }
  const json = read.texts.has('output')
  const found = inspect(file)
  if (verb === 'check')
    output.stdout(json ? toJson(checked(file, found)) : checkedText(file, found))
  else if (found.kind === 'read') showState(file, found, json, output)
  if (verb === 'show' && found.fault !== undefined) {
    output.stderr(`namegate: ${cleanCell(faultText(file, found.fault))}\n`)
  }
  return isGood(found) ? EXIT_OK : EXIT_NEGATIVE
}

function inspect(file: string): Inspection {
  try {
    return inspectFile(file)
  } catch (error) {
    const text = `Cannot read ${file}: ${messageOf(error)}`
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    throw isMissing ? new UsageError(text) : new UnavailableError(text)
  }
}

/** Returns true if the file has no fault. A journal that ends in the middle of a write is good, because a killed process leaves it so. */
function isGood(found: Inspection): boolean {
  if (found.kind === 'unreadable') return false
  return (
    found.fault === undefined || (found.fault.kind === 'cut' && found.header.kind === 'journal')
  )
}

function faultText(file: string, { offset, reason }: NonNullable<Inspection['fault']>): string {
  return `${file}: at octet ${offset}: ${reason}`
}

const CUT = 'no fault: the last write was cut when its process was ended, and is left out'

function checkedText(file: string, found: Inspection): string {
  const { fault } = found
  const text = fault === undefined ? '' : cleanCell(faultText(file, fault))
  if (found.kind === 'unreadable' || !isGood(found)) return `${text}\n`
  const where = fault === undefined ? '' : `${text}: ${CUT}\n`
  const { header, records, state } = found
  const what = header.kind === 'image' ? 'checkpoint' : 'journal'
  const counts = `${state.numbers.length} numbers, ${state.pairs.count} pairs, ${sum(records)} records`
  return `${where}${file}: good ${what} of generation ${header.generation}: ${counts}\n`
}

function checked(file: string, found: Inspection): object {
  const { fault } = found
  return {
    file,
    good: isGood(found),
    kind:
      found.kind === 'unreadable' ? null : found.header.kind === 'image' ? 'checkpoint' : 'journal',
    offset: fault?.offset ?? null,
    reason: fault?.reason ?? null,
  }
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, each) => total + each, 0)
}
