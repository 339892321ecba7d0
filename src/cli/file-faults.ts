// Notes about files with faults, for commands that print refusals: the present text of such a file may allow what was refused.

import type { Status } from '../client/api-types.ts'
import type { Client } from '../client/client.ts'
import { notInForce, UnavailableError } from '../core/errors.ts'
import { fieldsOf, listOf, numberOf, textOf, type PartOf } from './fields.ts'

/** Returns one line for each fault of a file. Empty without faults, and if no daemon answers. */
export async function faultNotes(client: Client): Promise<string> {
  try {
    const { faults }: PartOf<Status> = (await client.request('GET /v1/status')).value
    return listOf(faults).map(noteOf).join('')
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error
    return ''
  }
}

function noteOf(fault: unknown): string {
  const { file, line, column, message }: PartOf<Status['faults'][number]> = fieldsOf(fault)
  const position = { file: textOf(file), line: numberOf(line), column: numberOf(column) }
  return `namegate: ${notInForce({ position, message: textOf(message) })}\n`
}
