// `runMatch` runs `namegate match`. The command prints for each name whether the pattern matches the name.

import { formatName, parseName } from '../../core/name.ts'
import { matches, parseMatchPattern } from '../../policy/match/pattern.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  EXIT_USAGE,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'

export function runMatch(read: ParsedArguments, output: CommandOutput): number {
  const [patternText, ...nameTexts] = read.positionals
  if (patternText === undefined || nameTexts.length === 0) {
    return read.wrong('match needs a PATTERN and at least one NAME')
  }
  const parsed = parseMatchPattern(patternText)
  if (parsed.kind === 'bad') {
    output.stderr(`namegate: pattern ${JSON.stringify(patternText)}: ${parsed.reason}\n`)
    return EXIT_USAGE
  }
  const rows: { pattern: string; name: string; matches: boolean }[] = []
  let invalid = false
  for (const text of nameTexts) {
    const name = parseName(text)
    if (name.kind === 'bad') {
      output.stderr(`namegate: name ${JSON.stringify(text)}: ${name.reason}\n`)
      invalid = true
      continue
    }
    const verdict = matches(parsed.pattern, name.name)
    rows.push({ pattern: parsed.pattern.text, name: formatName(name.name), matches: verdict })
  }
  if (invalid) return EXIT_USAGE
  output.stdout(read.texts.has('output') ? toJson(rows) : formatRows(rows))
  return rows.every((row) => row.matches) ? EXIT_OK : EXIT_NEGATIVE
}

function formatRows(rows: readonly { readonly name: string; readonly matches: boolean }[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length))
  return rows
    .map((row) => `${row.name.padEnd(width)}  ${row.matches ? 'matches' : 'does not match'}\n`)
    .join('')
}
