// Colours for a terminal. A Style writes a word in a colour, or leaves it plain. Words that a daemon sent must be clean (table.ts) before
// they get a colour.

import type { CommandOutput, ParsedArguments } from './command.ts'

/** The SGR codes of ECMA-48 that switch a colour or weight on. */
const CODES = { red: 31, green: 32, yellow: 33, magenta: 35, cyan: 36, bold: 1, dim: 2 } as const
export type Look = keyof typeof CODES

export type Style = (text: string, look: Look) => string

const WHEN = ['auto', 'always', 'never']

export const PLAIN: Style = (text) => text
const COLOURED: Style = (text, look) => `\u001b[${CODES[look]}m${text}\u001b[0m`

/** Returns the style that `--color`, the terminal and NO_COLOR ask for. If the value of `--color` is wrong, returns the fault as text. */
export function styleOf({ texts }: ParsedArguments, { terminal }: CommandOutput): Style | string {
  const when = texts.get('color') ?? 'auto'
  if (!WHEN.includes(when)) {
    return `--color: found ${JSON.stringify(when)}, expected ${WHEN.join(', ')}`
  }
  // https://no-color.org: any value but the empty text switches colours off.
  const wants = terminal !== undefined && (process.env['NO_COLOR'] ?? '') === ''
  return when === 'always' || (when === 'auto' && wants) ? COLOURED : PLAIN
}
