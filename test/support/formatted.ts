// The format of this repository (oxfmt, .oxfmtrc.json) for texts that a generator makes.

import { readFileSync } from 'node:fs'
import { format } from 'oxfmt'

/** Formats the text of a file by its name. Throws at a syntax error. */
export async function formatted(path: string, text: string): Promise<string> {
  const { ignorePatterns: _, ...options } = JSON.parse(readFileSync('.oxfmtrc.json', 'utf8')) as {
    readonly ignorePatterns: readonly string[]
  }
  const { code, errors } = await format(path, text, options)
  if (errors.length > 0) throw new Error(`${path}: ${JSON.stringify(errors[0])}`)
  return code
}
